"""Deadlines of tasks with a driven clock: due tasks are updated once, and after an outage there is grace."""

from __future__ import annotations

import pytest

from holdfast.core.event import Event
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.core.task import CLAIMED, DEAD, Task
from holdfast.engine.expiry import GiveGrace, UpdateDueTask
from holdfast.engine.verbs.tasks.claiming import Claimed
from tests.support import START, a_session, check_log, every, put, run, transact
from tests.task_commands import BASE, LEASE, a_claimed, a_task, begin, complete, create, take


@pytest.mark.parametrize(
    ("row", "due"),
    [
        (a_claimed(ends=START), True),
        (a_claimed(ends=START + 1), False),
        (a_task(ready=False, scheduled_at=START), True),
        (a_task(ready=False, scheduled_at=START + 1), False),
        (a_task(), False),
        (a_task(state=DEAD, ready=False), False),
    ],
    ids=["expired", "live", "ripe", "later", "ready", "final"],
)
def test_a_due_task_is_updated_exactly_once(store, row, due):
    put(store, row)
    settle = UpdateDueTask(**BASE, task_id="t1")
    assert [run(store, settle), run(store, settle)] == [due, False]
    assert run(store, UpdateDueTask(**BASE, task_id="none")) is False
    check_log(store)


@pytest.mark.parametrize(
    ("row", "expected_grace"),
    [
        (a_claimed(ends=START + 1), 60),
        (a_claimed(ends=START + 1, lease_duration=30 * SECOND), 30),
        (a_claimed(ends=START + 1, lease_duration=3 * SECOND), 10),
        (a_claimed(ends=START), None),
        (a_claimed(ends=START + 999 * SECOND), None),
        (a_task(), None),
        (a_session(ends=START + 1, name="agent"), 60),
        (a_session(ends=START, name="agent"), None),
        (a_session(ends=START + 1), None),
        (a_session(ends=START + 1, name="agent", ended_at=START, ended_how="deleted"), None),
    ],
    ids=[
        "a task", "a short one", "a very short one", "expired at the last beat", "expires later anyway", "free",
        "a named session", "a session expired at the last beat", "an unnamed session", "an ended session",
    ],
)  # fmt: skip
def test_grace_is_given_to_tasks_and_named_sessions_that_were_live_at_the_last_beat(store, clock, row, expected_grace):
    put(store, row)
    clock.advance(60)
    assert run(store, GiveGrace(**BASE, key=row.key, last_beat=START)) is (expected_grace is not None)
    after = every(store, type(row))[0]
    assert after.expires_at == (row.expires_at if expected_grace is None else clock.now + expected_grace * SECOND)
    assert [event.kind for event in every(store, Event)[1:]] == (
        [] if expected_grace is None else [f"{row.noun}.extended"]
    )
    check_log(store)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_restarted_server_gives_grace_to_tasks_and_sessions(opened, started, clock, kind):
    store = opened(kind, clock)
    run(store, begin())
    transact(store, create("t1"), create("t2"), take("work", session_id="s1"), take("work", seed="2"))
    store.beat()
    clock.advance(1_000)
    engine = started(store, serving=True)
    tasks = every(store, Task)
    assert [(task.state, task.expires_at) for task in tasks] == [(CLAIMED, clock.now + LEASE)] * 2
    assert every(store, Session)[0].expires_at == clock.now + 60 * SECOND
    engine.call(complete("t1"))
    engine.call(complete("t2", "2"))
    check_log(store)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_without_an_outage_no_grace_is_given(opened, started, clock, kind):
    store = opened(kind, clock)
    transact(store, create("t1"), take("work"))
    store.close_outage(store.beat()[1])
    clock.advance(1_000)
    engine = started(store, serving=True)
    assert isinstance(engine.call(take("work", seed="2"), wait_seconds=5), Claimed)
