"""Tasks that depend on others, on every store: freed by the transaction of a completion, or soon after by the sweep."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.errors import Invalid, NotYetClaimable, QuotaExceeded
from holdfast.core.event import Event
from holdfast.core.plan import Allowance, Plan
from holdfast.core.row import SECOND
from holdfast.core.task import Task
from holdfast.engine.retention import PurgeTask
from holdfast.engine.verbs.batch import Batch
from holdfast.store.needs import MAX_DEPENDENTS
from tests.support import ACCOUNT, CAUSE, START, check_log, every, put, run, transact
from tests.task_commands import (
    BASE,
    LEASE,
    a_task,
    begin,
    cancel,
    complete,
    create,
    fail,
    plan,
    requeue,
    sweep,
    take,
    take_this,
)


def found(store, name="d") -> Task:
    with store.read() as reader:
        return reader.row(Task, ACCOUNT, name)


def state_of(store, name="d"):
    task = found(store, name)
    return task.waits_for or ("ready" if task.ready else task.state)


def kinds(store, name="d"):
    return [event.kind.removeprefix("task.") for event in every(store, Event) if event.subject == f"task:{name}"]


def finish(store, name, seed="s1"):
    transact(store, take_this(name, seed=seed))
    return run(store, complete(name, seed=seed))


def sweep_all(store):
    """Passes of the sweep until nothing is due; returns how many there were."""
    passes = 0
    while sweep(store):
        passes += 1
        assert passes < 100
    return passes


@pytest.fixture
def waiting(store):
    """A store in which `d` waits for `a` and `b`."""
    transact(store, create("a"), create("b"), create("d", after=["a", "b"]))
    return store


def test_a_task_is_ready_in_the_transaction_of_the_last_completion_it_needs(waiting):
    assert state_of(waiting) == tasks.DEPENDENCIES
    with pytest.raises(NotYetClaimable):
        run(waiting, take_this("d"))
    finish(waiting, "b")
    assert (state_of(waiting), found(waiting).unmet) == (tasks.DEPENDENCIES, 1)
    finish(waiting, "a")
    assert state_of(waiting) == "ready"
    assert kinds(waiting) == ["created", "dependency_met", "dependency_met"]
    assert [each.task.id for each in run(waiting, take("work")).taken] == ["d"]
    check_log(waiting)


def test_a_completion_and_the_claim_that_it_makes_possible_share_a_batch(waiting):
    finish(waiting, "a")
    transact(waiting, take_this("b"))
    _, claimed = transact(waiting, complete("b"), take("work", seed="s2"))
    assert [each.task.id for each in claimed.taken] == ["d"]


def test_dependencies_are_found_by_id_or_by_the_unique_key_of_a_live_task(store):
    transact(store, create("a"), create("b", unique_key="build"))
    run(store, create("d", after=["build", "a", "b"]))
    assert tasks.needed_ids(found(store)) == ["b", "a"]
    finish(store, "b")
    with pytest.raises(Invalid, match="'build'") as caught:
        run(store, create("e", after=["a", "build"]))
    assert [error["pointer"] for error in caught.value.errors] == ["/dependsOn/1"]
    assert found(store, "e") is None
    check_log(store)


def test_a_task_of_another_account_is_unknown(store):
    run(store, create("a", account="other"))
    with pytest.raises(Invalid):
        run(store, create("d", after=["a"]))


def test_a_dependency_that_has_completed_is_met_at_creation_and_kept_for_its_result(store):
    run(store, create("a"))
    finish(store, "a")
    run(store, create("d", after=["a"]))
    assert state_of(store) == "ready"
    assert found(store, "a").awaited is True


def test_a_dependent_that_is_created_in_the_batch_of_the_completion_is_freed(store):
    transact(store, create("a"), create("d1", after=["a"]), take_this("a"))
    transact(store, create("d2", after=["a"]), complete("a"))
    assert [state_of(store, name) for name in ("d1", "d2")] == ["ready", "ready"]
    assert found(store, "a").releasing is None


def test_the_first_dependent_may_share_the_batch_of_the_completion(store):
    transact(store, create("a"), take_this("a"))
    transact(store, create("d", after=["a"]), complete("a"))
    sweep_all(store)
    assert (state_of(store), found(store, "a").releasing) == ("ready", None)


def fail_for_good(store, name):
    transact(store, take_this(name))
    return run(store, fail(name, permanent=True))


def test_a_dead_letter_holds_its_dependents_until_it_is_requeued_and_completes(waiting):
    finish(waiting, "a")
    fail_for_good(waiting, "b")
    assert (state_of(waiting), sweep_all(waiting)) == (tasks.DEPENDENCIES, 0)
    run(waiting, requeue("b"))
    assert state_of(waiting) == tasks.DEPENDENCIES
    finish(waiting, "b", seed="s2")
    assert state_of(waiting) == "ready"
    check_log(waiting)


@pytest.mark.parametrize(
    "end", [fail_for_good, lambda store, name: run(store, cancel(name))], ids=["dead", "cancelled"]
)
def test_dependents_are_cancelled_or_run_after_a_failure_and_so_are_theirs(store, end):
    transact(
        store,
        create("a"),
        create("c1", after=["a"], on_dependency_failure=tasks.CANCEL),
        create("c2", after=["c1"], on_dependency_failure=tasks.CANCEL),
        create("c3", after=["c2"], on_dependency_failure=tasks.RUN),
        create("r", after=["a"], on_dependency_failure=tasks.RUN),
    )
    end(store, "a")
    assert [state_of(store, name) for name in ("c1", "r")] == [tasks.CANCELLED, "ready"]
    assert found(store, "c1").cancel_reason.startswith("it depends on task a, which")
    assert sweep_all(store) == 2, "each level of a cascade is one step of the sweep"
    assert [state_of(store, name) for name in ("c2", "c3")] == [tasks.CANCELLED, "ready"]
    assert "c1, which was cancelled" in found(store, "c2").cancel_reason
    check_log(store)


def test_a_failed_dependency_counts_at_creation_too(store):
    run(store, create("a"))
    run(store, cancel("a"))
    policies = {"h": None, "c": tasks.CANCEL, "r": tasks.RUN}
    transact(store, *(create(name, after=["a"], on_dependency_failure=policy) for name, policy in policies.items()))
    assert [state_of(store, name) for name in policies] == [tasks.DEPENDENCIES, tasks.CANCELLED, "ready"]
    assert kinds(store, "c") == ["created", "cancelled"]
    check_log(store)


@pytest.mark.parametrize("policy", [tasks.HOLD, tasks.RUN, tasks.CANCEL])
@pytest.mark.parametrize("end", [finish, fail_for_good], ids=["completed", "failed"])
def test_a_dead_letter_learns_of_the_end_of_a_task_that_it_waited_for(store, clock, end, policy):
    run(store, create("a"))
    run(store, create("d", after=["a"], on_dependency_failure=policy, deadline_at=clock.now + SECOND))
    clock.advance(2)
    sweep_all(store)
    assert (found(store).state, found(store).unmet) == (tasks.DEAD, 1)
    end(store, "a")
    assert found(store).state == tasks.DEAD
    run(store, requeue("d"))
    waits = end is fail_for_good and policy != tasks.RUN
    assert state_of(store) == (tasks.DEPENDENCIES if waits else "ready")
    check_log(store)


@pytest.mark.parametrize("how", ["expiry", "claim", "session"])
def test_every_way_in_which_a_task_ends_concerns_its_dependents(store, clock, how):
    given = {"session_id": "s1"} if how == "session" else {}
    transact(store, begin("s1", ttl=10 * SECOND))
    transact(store, create("a", max_attempts=1, lease_duration=LEASE), take_this("a", **given))
    run(store, create("d", after=["a"], on_dependency_failure=tasks.CANCEL))
    clock.advance(11 if how == "session" else 301)
    if how == "claim":
        transact(store, take_this("a", seed="s2"))
    sweep_all(store)
    assert [state_of(store, name) for name in ("a", "d")] == [tasks.DEAD, tasks.CANCELLED]
    check_log(store)


def many(store, count, **more):
    """`a`, and so many tasks that wait for it."""
    task = tasks.depend_on(Task(ACCOUNT, "d", type="work"), [Task(ACCOUNT, "a")])
    waiting = replace(tasks.create(task, START), **more)
    put(store, a_task("a", awaited=True), *(replace(waiting, id=f"d{number:05}") for number in range(count)))


def test_five_hundred_dependents_are_freed_at_once_and_the_rest_by_the_sweep_of_any_server(store):
    many(store, 2 * MAX_DEPENDENTS + 3)
    finish(store, "a")
    ready = [task.id for task in every(store, Task) if task.ready]
    assert ready == [f"d{number:05}" for number in range(MAX_DEPENDENTS)]
    assert found(store, "a").releasing == ready[-1]
    assert sweep_all(store) == 2
    assert sum(task.ready for task in every(store, Task)) == 2 * MAX_DEPENDENTS + 3
    assert found(store, "a").releasing is None
    check_log(store)


def test_dependents_that_hold_do_not_keep_later_ones_from_learning_of_a_failure(store):
    many(store, MAX_DEPENDENTS + 1)
    run(store, create("e", after=["a"], on_dependency_failure=tasks.CANCEL))
    run(store, cancel("a"))
    assert state_of(store, "e") == tasks.DEPENDENCIES
    sweep_all(store)
    assert state_of(store, "e") == tasks.CANCELLED


def test_a_dead_letter_that_is_requeued_meanwhile_frees_the_rest_when_it_completes(store):
    many(store, MAX_DEPENDENTS + 1, on_dependency_failure=tasks.CANCEL)
    fail_for_good(store, "a")
    run(store, requeue("a"))
    assert sweep_all(store) == 0
    last = f"d{MAX_DEPENDENTS:05}"
    assert state_of(store, last) == tasks.DEPENDENCIES
    finish(store, "a", seed="s2")
    sweep_all(store)
    assert state_of(store, last) == "ready"


def test_a_repeated_completion_changes_nothing(waiting):
    finish(waiting, "a")
    before = every(waiting, Event)
    run(waiting, complete("a"))
    assert every(waiting, Event) == before


# -- retention ---------------------------------------------------------------------------------------------------


def purge(store, name):
    return run(store, PurgeTask(**(BASE | {"task_id": name, "before": START + 10**9, "dead": True})))


def test_retention_keeps_a_finished_task_while_a_live_one_depends_on_it(waiting):
    finish(waiting, "a")
    assert not purge(waiting, "a"), "its result is for the claim of d"
    finish(waiting, "b")
    finish(waiting, "d")
    assert [purge(waiting, name) for name in ("a", "d", "b")] == [True, True, True]
    check_log(waiting)


# -- plans -------------------------------------------------------------------------------------------------------


def test_a_plan_names_its_tasks_by_refs_in_any_order(store):
    run(store, create("x"))
    items = [
        ("test", create("p1", after=["build", "x"])),
        ("build", create("p2")),
        (None, create("p3", after=["test"])),
    ]
    outcome = run(store, plan(*items))
    assert [each.task.id for each in outcome.each] == ["p1", "p2", "p3"]
    assert [tasks.needed_ids(found(store, name)) for name in ("p1", "p2", "p3")] == [["p2", "x"], [], ["p1"]]
    assert [state_of(store, name) for name in ("p1", "p2", "p3")] == [tasks.DEPENDENCIES, "ready", tasks.DEPENDENCIES]
    check_log(store)


def test_a_ref_shadows_ids_and_unique_keys(store):
    run(store, create("a", unique_key="b"))
    run(store, plan(("a", create("p1")), ("b", create("p2", after=["a"])), (None, create("p3", after=["b"]))))
    assert [tasks.needed_ids(found(store, name)) for name in ("p2", "p3")] == [["p1"], ["p2"]]


@pytest.mark.parametrize(
    ("items", "reason", "pointer"),
    [
        ((("a", create("p1", after=["b"])), ("b", create("p2", after=["a"]))), "circle", "/items/0/dependsOn"),
        ((("a", create("p1", after=["a"])),), "circle", "/items/0/dependsOn"),
        ((("a", create("p1")), ("b", create("p2", after=["a", "zzz"]))), "item 1: there is no", "/items/1/dependsOn/1"),
    ],
    ids=["circle", "itself", "unknown"],
)
def test_a_plan_with_an_error_creates_nothing(store, items, reason, pointer):
    transact(store, create("other"))
    before = every(store, Event)
    with pytest.raises(Invalid, match=reason) as caught:
        run(store, plan(*items))
    assert [error["pointer"] for error in caught.value.errors] == [pointer]
    assert every(store, Event) == before
    assert [task.id for task in every(store, Task)] == ["other"]


def test_a_plan_over_the_quota_creates_nothing_and_is_not_charged(store):
    small = Plan(id="small", name="small", tasks_per_month=1)
    metered = [
        (ref, replace(create(task_id), allowance=Allowance(small, small, None, START)))
        for ref, task_id in (("a", "p1"), ("b", "p2"))
    ]
    with pytest.raises(QuotaExceeded) as caught:
        run(store, plan(*metered))
    assert caught.value.facts["item"] == 1
    assert every(store, Task) == []
    run(store, metered[0][1])


def test_an_item_with_the_unique_key_of_a_live_task_stands_for_that_task(store):
    run(store, create("a", unique_key="build"))
    outcome = run(store, plan(("one", create("p1", unique_key="build")), (None, create("p2", after=["one"]))))
    assert [each.task.id for each in outcome.each] == ["a", "p2"]
    assert tasks.needed_ids(found(store, "p2")) == ["a"]


def test_an_item_of_an_ordinary_batch_may_depend_on_the_unique_key_of_an_earlier_one(store):
    items = (create("p1", unique_key="build"), create("p2", after=["build"]), create("p3", after=["zzz"]))
    outcome = run(store, Batch(account=ACCOUNT, cause=CAUSE, items=items))
    assert [isinstance(each, Invalid) for each in outcome.each] == [False, False, True]
    assert tasks.needed_ids(found(store, "p2")) == ["p1"]
