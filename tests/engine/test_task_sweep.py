"""The sweep of tasks: expired ones return to their queue, scheduled ones become ready, once and promptly."""

from __future__ import annotations

import threading
import time

import pytest

from holdfast.core.event import Event
from holdfast.core.row import SECOND
from holdfast.core.task import CLAIMED, DEAD, LEASE_EXPIRED, PENDING, Task, last_attempt
from holdfast.engine.sweep import expiry_command
from tests.support import ACCOUNT, check_log, every, put, wait_until
from tests.task_commands import a_claimed, beat, complete, create, take, take_this

pytestmark = pytest.mark.waits(6)

SHORT = SECOND // 4


def task_of(engine, task_id="t1"):
    return engine.read(lambda reader: reader.row(Task, ACCOUNT, task_id))


def event_kinds(store, task_id="t1"):
    return [event.kind for event in every(store, Event) if event.subject == f"task:{task_id}"]


def test_a_lapsed_task_returns_to_its_queue_promptly_without_a_request(engine):
    engine.call(create("t1", lease_duration=SHORT))
    (held,) = engine.call(take("work")).taken
    wait_until(lambda: task_of(engine).state == PENDING)
    attempt = last_attempt(task_of(engine))
    assert attempt.outcome == "expired"
    assert 0 <= attempt.at - held.task.expires_at < SECOND // 2
    assert event_kinds(engine.store) == ["task.created", "task.claimed", "task.expired"]
    check_log(engine.store)


def test_a_task_that_lapses_at_its_last_attempt_becomes_a_dead_letter_with_its_cause(engine):
    engine.call(create("t1", lease_duration=SHORT, max_attempts=2))
    for number in ("1", "2"):
        engine.call(take("work", seed=number), wait_seconds=5)
        wait_until(lambda: task_of(engine).state != CLAIMED)
    assert (task_of(engine).state, task_of(engine).dead_cause) == (DEAD, LEASE_EXPIRED)
    assert event_kinds(engine.store)[-2:] == ["task.claimed", "task.dead_lettered"]
    check_log(engine.store)


def test_a_renewed_task_does_not_lapse(engine):
    engine.call(create("t1", lease_duration=SHORT))
    engine.call(take("work"))
    for _ in range(4):
        time.sleep(0.1)
        engine.call(beat("t1"))
    assert task_of(engine).state == CLAIMED


def test_a_scheduled_task_joins_its_queue_when_it_is_due(engine):
    now = engine.read(lambda reader: reader.now)
    engine.call(create("t1", scheduled_at=now + SHORT))
    assert not task_of(engine).ready
    wait_until(lambda: task_of(engine).ready)
    assert event_kinds(engine.store) == ["task.created", "task.due"]


def test_many_lapses_at_once_are_all_swept(engine):
    now = engine.read(lambda reader: reader.now)
    rows = [a_claimed(f"t{number:04}", ends=now + SHORT) for number in range(1_200)]
    put(engine.store, *rows)
    engine.sweep.wake()
    wait_until(lambda: engine.read(lambda reader: reader.next_deadline()) is None, 10)
    assert {task.state for task in every(engine.store, Task)} == {PENDING}
    check_log(engine.store)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_servers_never_recover_a_task_twice(opened, started, kind):
    engines = [started(opened(kind)), started(opened(kind))]
    now = engines[0].read(lambda reader: reader.now)
    put(engines[0].store, *(a_claimed(f"t{number:03}", ends=now + SHORT, max_attempts=5) for number in range(100)))
    wait_until(lambda: engines[0].read(lambda reader: reader.next_deadline()) is None, 10)
    # A server that found the tasks due at the same moment runs the same commands later.
    late = [expiry_command((Task.table, ACCOUNT, f"t{number:03}")) for number in range(100)]
    assert not any(engines[1].sweep._run_all(late))
    expired = [event.subject for event in every(engines[0].store, Event) if event.kind == "task.expired"]
    assert sorted(expired) == sorted(f"task:t{number:03}" for number in range(100))
    assert {(task.attempt, task.attempt_count) for task in every(engines[0].store, Task)} == {(1, 1)}
    check_log(engines[0].store)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_completion_that_races_the_sweep_has_one_outcome(opened, started, kind):
    engines = [started(opened(kind)), started(opened(kind))]
    for turn, late in enumerate((-0.002, -0.001, 0.0, 0.001, 0.002, 0.003, 0.05)):
        name = f"t{turn}"
        engines[0].call(create(name, lease_duration=SHORT // 2))
        (held,) = engines[0].call(take_this(name, seed="s1")).taken
        answers = []

        def finish(engine, name=name, answers=answers):
            try:
                answers.append(engine.call(complete(name)).task.state)
            except Exception as error:
                answers.append(type(error).__name__)

        now = engines[0].read(lambda reader: reader.now)
        time.sleep(max((held.task.expires_at - now) / SECOND + late, 0.0))
        racer = threading.Thread(target=finish, args=(engines[1],))
        racer.start()
        racer.join(5)
        wait_until(lambda name=name: task_of(engines[0], name).state != CLAIMED)
        ends = [kind for kind in event_kinds(engines[0].store, name) if kind in {"task.completed", "task.expired"}]
        assert answers in (["completed"], ["LeaseExpired"])
        assert ends == (["task.completed"] if answers == ["completed"] else ["task.expired"])
