"""Creating and claiming tasks: in order, each by one worker, also within one batch."""

from __future__ import annotations

import pytest

from holdfast.core.errors import Invalid, InvalidTransition, NotYetClaimable, TaskClaimed, TaskMissing
from holdfast.core.event import Event
from holdfast.core.lease import proof_of
from holdfast.core.row import SECOND
from holdfast.core.task import CLAIMED, PENDING, Task
from holdfast.engine.verbs.tasks.claiming import Claimed, Empty
from holdfast.engine.verbs.tasks.creating import Created
from tests.support import ACCOUNT, BOB, START, check_log, every, run, transact
from tests.task_commands import (
    LEASE,
    cancel,
    complete,
    create,
    fail,
    lease_of,
    release_task,
    requeue,
    sweep,
    take,
    take_this,
)


def taken(outcome):
    """The ids of the tasks that a claim got."""
    return [each.task.id for each in outcome.taken] if isinstance(outcome, Claimed) else type(outcome).__name__


def kinds(store):
    return [event.kind for event in every(store, Event)]


def test_a_claim_holds_the_task_for_its_worker_and_returns_the_lease_id_once(store):
    run(store, create("t1", lease_duration=30 * SECOND))
    (held,) = run(store, take("work", worker="w1", by=BOB)).taken
    assert held.lease_id == lease_of("t1")
    assert (held.task.state, held.task.worker, held.task.principal) == (CLAIMED, "w1", BOB.id)
    assert (held.task.proof, held.task.token) == (proof_of(held.lease_id), 1)
    assert (held.task.claimed_at, held.task.expires_at) == (START, START + 30 * SECOND)
    assert every(store, Task) == [held.task]
    assert held.lease_id not in "".join(event.data for event in every(store, Event))
    check_log(store)


def test_tasks_created_in_a_batch_can_be_claimed_in_it(store):
    outcomes = transact(
        store, take("work", seed="early"), create("t1"), create("t2"), take("work", limit=5), create("t3"), take("work")
    )
    assert [taken(outcome) for outcome in outcomes if not isinstance(outcome, Created)] == [
        "Empty", ["t1", "t2"], ["t3"],
    ]  # fmt: skip
    assert [task.token for task in every(store, Task)] == [1, 2, 3]
    check_log(store)


def test_tasks_returned_in_a_batch_can_be_claimed_in_it(store):
    transact(store, create("t1"), create("t2"), create("t3"), take("work", limit=3))
    outcomes = transact(
        store, fail("t1"), take("work", seed="a"), release_task("t2"), complete("t3"), take("work", seed="b", limit=9)
    )
    assert [taken(outcomes[1]), taken(outcomes[4])] == [["t1"], ["t2"]]
    assert [(task.id, task.attempt) for task in every(store, Task)] == [("t1", 2), ("t2", 2), ("t3", 1)]
    check_log(store)


def test_each_task_of_a_batch_goes_to_one_claim(store):
    transact(store, *(create(f"t{number}") for number in range(7)))
    outcomes = transact(store, *(take("work", seed=f"s{number}", limit=3) for number in range(4)))
    assert [taken(outcome) for outcome in outcomes] == [["t0", "t1", "t2"], ["t3", "t4", "t5"], ["t6"], "Empty"]
    assert len({task.proof for task in every(store, Task)}) == 7
    check_log(store)


def test_a_claim_by_id_leaves_enough_tasks_for_claims_by_type_in_its_batch(store):
    """A claim by id may take a candidate of a claim by type, so more candidates must be loaded."""
    transact(store, *(create(f"t{number}") for number in range(4)))
    outcomes = transact(store, take_this("t0"), cancel("t1"), take("work", seed="a"), take("work", seed="b"))
    assert [taken(outcome) for outcome in outcomes[2:]] == [["t2"], ["t3"]]


def test_a_task_rescheduled_in_a_batch_leaves_enough_tasks_for_its_claims(store):
    transact(store, create("t1", unique_key="k"), create("t2"))
    put_off = create("t3", unique_key="k", replaces=True, scheduled_at=START + SECOND)
    assert taken(transact(store, put_off, take("work"))[1]) == ["t2"]


def test_a_claim_takes_from_the_queues_it_names_and_from_all_if_it_names_none(store):
    transact(store, create("t1", type="a"), create("t2", type="b", priority=1), create("t3", type="c", priority=2))
    assert taken(run(store, take("a", "b", seed="1"))) == ["t2"]
    assert taken(run(store, take("none", seed="2"))) == "Empty"
    assert taken(run(store, take("a", "c", seed="3", limit=5))) == ["t3", "t1"]
    transact(store, create("t4", type="a"), create("t5", type="b", priority=9))
    assert taken(run(store, take(seed="4", limit=5))) == ["t5", "t4"]
    assert isinstance(run(store, take(seed="5")), Empty)


def test_a_claim_of_any_type_leaves_enough_tasks_for_a_claim_of_one_type(store):
    transact(store, create("t1", type="a"), create("t2", type="a"), create("t3", type="b"))
    outcomes = transact(store, take(seed="1"), take("a", seed="2"), take("b", seed="3"), take(seed="4"))
    assert [taken(outcome) for outcome in outcomes] == [["t1"], ["t2"], ["t3"], "Empty"]


def test_a_claim_of_one_type_leaves_enough_tasks_for_a_claim_of_any_type(store):
    transact(store, create("t1", type="a"), create("t2", type="b"), create("t3", type="a"))
    outcomes = transact(store, take("a", seed="1"), take(seed="2"))
    assert [taken(outcome) for outcome in outcomes] == [["t1"], ["t2"]]


def test_accounts_never_see_each_other_s_tasks(store):
    transact(store, create("t1", account="other"), create("t2"))
    assert taken(run(store, take(limit=9))) == ["t2"]
    for command in (take_this("t1"), complete("t1"), cancel("t1"), requeue("t1")):
        with pytest.raises(TaskMissing):
            run(store, command)


@pytest.mark.parametrize("types", [("work",), (), ("work", "other")])
def test_a_claim_takes_the_task_with_the_highest_priority(store, types):
    for task_id, task_type, priority in (("t1", "work", 0), ("t2", "other", 2), ("t3", "work", 9)):
        run(store, create(task_id, type=task_type, priority=priority))
    assert [each.task.id for each in run(store, take(*types)).taken] == ["t3"]


def test_tasks_are_claimed_by_priority_then_in_order_of_creation(store, clock):
    for number, priority in enumerate([0, 5, 0, 100, 5]):
        clock.advance(1)
        run(store, create(f"t{number}", priority=priority))
    assert taken(run(store, take("work", limit=9))) == ["t3", "t1", "t4", "t0", "t2"]


def test_a_returned_task_comes_before_younger_ones(store, clock):
    for name in ("t1", "t2"):
        run(store, create(name))
        clock.advance(1)
    run(store, take("work"))
    run(store, fail("t1"))
    assert taken(run(store, take("work", seed="2"))) == ["t1"]


@pytest.mark.parametrize("swept", [False, True])
def test_a_scheduled_task_is_claimable_when_due_after_unscheduled_ones(store, clock, swept):
    due = START + 10 * SECOND
    transact(store, create("later", scheduled_at=due), create("now"))
    clock.now = due - 1
    with pytest.raises(NotYetClaimable):
        run(store, take_this("later"))
    assert taken(run(store, take("work", seed="1"))) == ["now"]
    assert isinstance(run(store, take("work", seed="2")), Empty)
    clock.now = due
    run(store, create("new"))
    if swept:
        sweep(store)
    assert taken(run(store, take("work", seed="3", limit=9))) == ["new", "later"]
    check_log(store)


@pytest.mark.parametrize(
    ("prepare", "refusal"),
    [
        ((take("work", seed="other"),), TaskClaimed),
        ((take("work", seed="other"), complete("t1", "other")), InvalidTransition),
        ((cancel("t1"),), InvalidTransition),
        ((take("work", seed="other"), fail("t1", "other", permanent=True)), InvalidTransition),
    ],
    ids=["held", "done", "cancelled", "dead letter"],
)
def test_a_task_that_is_not_claimable_is_refused_by_id(store, prepare, refusal):
    run(store, create("t1"))
    for command in prepare:
        run(store, command)
    before = every(store, Task)
    with pytest.raises(refusal):
        run(store, take_this("t1"))
    assert every(store, Task) == before


def test_a_claim_by_id_takes_over_a_lapsed_task_before_the_sweep(store, clock):
    run(store, create("t1"))
    run(store, take("work", seed="late", worker="late"))
    clock.advance(LEASE // SECOND)
    (held,) = run(store, take_this("t1", seed="next")).taken
    assert (held.task.attempt, held.task.attempt_count) == (2, 2)
    assert kinds(store) == ["task.created", "task.claimed", "task.expired", "task.claimed"]
    check_log(store)


@pytest.mark.parametrize("mode", ["by id", "by type"])
def test_a_refused_claim_draws_no_token(store, mode):
    run(store, create("t1"))
    run(store, take("work"))
    transact(store, take_this("t1", seed="2") if mode == "by id" else take("work", seed="2"), create("t2"))
    assert run(store, take_this("t2", seed="3")).taken[0].task.token == 2


def test_a_schedule_out_of_bounds_is_refused_and_changes_nothing(store, clock):
    outcomes = transact(store, create("t1", scheduled_at=START), create("t2"))
    assert [type(outcome) for outcome in outcomes] == [Invalid, Created]
    assert [task.id for task in every(store, Task)] == ["t2"]
    with store.read() as reader:
        assert reader.task_counts(ACCOUNT) == [("work", PENDING, 1)]
