"""Tasks that require capabilities: only who has all of them gets one, by priority, and only such a waiter is woken."""

from __future__ import annotations

import pytest

from holdfast.core.errors import CapabilityMissing
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.engine.verbs.tasks.claiming import Claimed
from tests.support import ACCOUNT, Futures, check_log, every, run, transact, wait_until
from tests.task_commands import begin, complete, create, release_task, take, take_this


def taken(outcome):
    """The ids of the tasks that a claim got."""
    return [each.task.id for each in outcome.taken] if isinstance(outcome, Claimed) else type(outcome).__name__


def test_only_a_worker_with_all_capabilities_gets_a_task(store):
    run(store, create("t1", requires="gpu,repo:shop"))
    assert taken(run(store, take("work"))) == "Empty"
    assert taken(run(store, take("work", capabilities="gpu"))) == "Empty"
    assert taken(run(store, take(capabilities="cpu,repo:shop"))) == "Empty"
    assert taken(run(store, take(capabilities="cpu,gpu,repo:shop"))) == ["t1"]
    check_log(store)


@pytest.mark.parametrize("types", [("work",), ("work", "other"), ()])
def test_the_order_of_the_queue_holds_within_what_a_worker_may_take(store, types):
    wanted = [("t1", 1, None), ("t2", 5, "gpu"), ("t3", 3, "cpu"), ("t4", 9, "cpu,gpu"), ("t5", 5, None)]
    transact(store, *(create(key, priority=priority, requires=requires) for key, priority, requires in wanted))
    assert taken(run(store, take(*types, limit=9, capabilities="gpu", seed="a"))) == ["t2", "t5", "t1"]
    assert taken(run(store, take(*types, limit=9, capabilities="cpu,gpu", seed="b"))) == ["t4", "t3"]


def test_claims_of_one_batch_get_what_each_may_take(store):
    transact(store, *(create(f"t{n}", requires=[None, "gpu"][n % 2], priority=9 - n) for n in range(6)))
    outcomes = transact(
        store,
        take("work", seed="1"),
        take("work", seed="2", capabilities="gpu", limit=2),
        take(seed="3", capabilities="cpu", limit=2),
        take(seed="4", capabilities="cpu,gpu", limit=4),
    )
    assert list(map(taken, outcomes)) == [["t0"], ["t1", "t2"], ["t4"], ["t3", "t5"]]


def test_a_claim_by_id_without_a_capability_is_refused_and_names_it(store):
    run(store, create("t1", requires="cpu,gpu"))
    with pytest.raises(CapabilityMissing, match="requires gpu") as caught:
        run(store, take_this("t1", capabilities="cpu"))
    assert caught.value.facts == {"missing": ["gpu"]}
    assert taken(run(store, take_this("t1", capabilities="cpu,gpu"))) == ["t1"]


def test_a_session_lends_its_capabilities_to_its_claims(store):
    transact(store, create("t1", requires="cpu,gpu"), create("t2", requires="gpu"), begin("agent", capabilities="gpu"))
    claim = {"session_id": "agent"}
    assert taken(run(store, take("work", **claim, seed="1"))) == ["t2"]
    assert taken(run(store, take_this("t1", **claim, capabilities="cpu", seed="2"))) == ["t1"]
    check_log(store)


def test_resuming_a_session_keeps_its_capabilities_unless_others_are_given(store):
    secret = run(store, begin("agent", capabilities="gpu")).secret
    run(store, begin("agent", secret=secret))
    assert [row.capabilities for row in every(store, Session)] == ["gpu"]
    run(store, begin("agent", secret=secret, capabilities=""))
    assert [row.capabilities for row in every(store, Session)] == [None]


def test_a_task_that_comes_due_is_claimed_only_with_its_capabilities(store, clock):
    at = clock.now + 10 * SECOND
    transact(store, create("t1", requires="gpu", scheduled_at=at), create("t2", scheduled_at=at))
    clock.now = at
    assert taken(run(store, take("work", limit=5, seed="1"))) == ["t2"]
    assert taken(run(store, take(limit=5, capabilities="gpu", seed="2"))) == ["t1"]


def test_a_returned_task_still_requires_what_it_did(store):
    run(store, create("t1", requires="gpu"))
    run(store, take("work", capabilities="gpu"))
    run(store, release_task("t1"))
    assert taken(run(store, take("work", seed="1"))) == "Empty"
    run(store, take("work", capabilities="gpu"))
    run(store, complete("t1"))


def test_a_replaced_task_requires_what_the_new_one_does(store):
    run(store, create("t1", unique_key="k"))
    run(store, create("t2", unique_key="k", requires="gpu", replaces=True))
    assert taken(run(store, take("work"))) == "Empty"
    assert taken(run(store, take("work", capabilities="gpu"))) == ["t1"]


def test_a_new_task_wakes_the_first_waiter_that_may_take_it(memory, started):
    engine, sink = started(memory), Futures()
    engine.call(begin("agent", capabilities="gpu"))
    _, plain = sink.send(engine, take("work", seed="1"), 30)
    _, able = sink.send(engine, take("work", seed="2", session_id="agent"), 30)
    wait_until(lambda: engine.task_waiters.size(ACCOUNT) == 2)
    engine.call(create("t1", requires="gpu"))
    assert taken(able.result(5)) == ["t1"]
    engine.call(create("t2"))
    assert taken(plain.result(5)) == ["t2"]
