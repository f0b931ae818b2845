"""Recovery on request: rows that are due end now, with their holdings, and no others."""

from __future__ import annotations

from holdfast.core.lease import Lease
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.verbs.recovery import Recover
from tests.support import ACCOUNT, check_log, claim, every, run, transact
from tests.task_commands import BASE, LEASE, begin, complete, create, take


def recover(store):
    with store.read() as reader:
        due = tuple(reader.due(1_000))
    return [(row.noun, row.id) for row in run(store, Recover(**BASE, due=due)).ended]


def test_all_expired_rows_end_at_once_and_are_reported(store, clock):
    run(store, begin())
    transact(store, create("t1"), create("t2"), create("t3", lease_duration=9 * LEASE), create("t4"))
    transact(store, take("work", session_id="s1"), take("work", seed="2", limit=2), claim("job", "l1"))
    clock.advance(LEASE // SECOND)
    assert sorted(recover(store)) == [("lease", "job"), ("session", "s1"), ("task", "t1"), ("task", "t2")]
    assert recover(store) == []
    assert [task.state for task in every(store, Task)] == ["pending", "pending", "claimed", "pending"]
    assert (every(store, Lease)[0].proof, every(store, Session)[0].ended_how) == (None, "expired")
    check_log(store)


def test_rows_that_were_renewed_in_time_are_not_ended(store, clock):
    transact(store, create("t1"), take("work"))
    due = (("tasks", ACCOUNT, "t1"), ("tasks", ACCOUNT, "none"))
    assert run(store, Recover(**BASE, due=due)).ended == ()
    run(store, complete("t1"))
    clock.advance(LEASE // SECOND)
    assert run(store, Recover(**BASE, due=due)).ended == ()
