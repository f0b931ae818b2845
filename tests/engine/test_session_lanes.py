"""A session lane has at most one task in flight; an expired task does not keep it busy."""

from __future__ import annotations

import pytest

from holdfast.core.errors import SessionBusy
from holdfast.core.row import SECOND
from holdfast.core.task import CLAIMED, PENDING, Task
from holdfast.engine.verbs.tasks.claiming import Busy, Claimed, Empty
from tests.support import every, run, transact
from tests.task_commands import LEASE, begin, complete, create, take, take_this


def test_a_session_lane_has_one_task_in_flight(store):
    run(store, begin(lane=True))
    transact(store, create("t1"), create("t2"))
    first = run(store, take("work", limit=5, session_id="s1"))
    assert [each.task.id for each in first.taken] == ["t1"]
    busy = run(store, take("work", seed="2", session_id="s1"))
    assert isinstance(busy, Busy)
    assert busy.task.id == "t1"
    with pytest.raises(SessionBusy) as caught:
        run(store, take_this("t2", seed="3", session_id="s1"))
    assert caught.value.facts == {"in_flight": "t1"}
    assert [task.state for task in every(store, Task)] == [CLAIMED, PENDING]
    run(store, complete("t1"))
    assert isinstance(run(store, take("work", seed="4", session_id="s1")), Claimed)


def test_two_claims_of_a_session_lane_in_one_batch_get_one_task(store):
    run(store, begin(lane=True))
    outcomes = transact(
        store, create("t1"), create("t2"), take("work", session_id="s1"), take("work", seed="2", session_id="s1")
    )
    assert [type(outcome) for outcome in outcomes[2:]] == [Claimed, Busy]


def test_a_session_lane_that_finds_no_task_is_not_busy(store):
    run(store, begin(lane=True))
    assert isinstance(run(store, take("work", session_id="s1")), Empty)


def test_a_session_lane_is_free_when_its_task_has_lapsed_before_the_sweep(store, clock):
    run(store, begin(lane=True, ttl=3 * LEASE))
    transact(store, create("t1"), create("t2"), take("work", session_id="s1"))
    clock.advance(LEASE // SECOND)
    assert isinstance(run(store, take("work", seed="2", session_id="s1")), Claimed)
    assert sum(task.state == CLAIMED for task in every(store, Task)) == 1
