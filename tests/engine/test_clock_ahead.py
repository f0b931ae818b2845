"""A boot with a wall clock ten years ahead: nothing is purged, schedules work, and the clock can be set right."""

from __future__ import annotations

import pytest

from holdfast.core.errors import Invalid, NotYetClaimable
from holdfast.core.lease import Lease
from holdfast.core.plan import DAY
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.core.task import PENDING, Task
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.clock_repair import move_back, set_clock_right
from holdfast.engine.retention import Retention
from holdfast.engine.verbs.tasks.claiming import Empty
from tests.support import ACCOUNT, ALICE, START, a_lease, a_lock, a_session, check_log, claim, every, put, run, transact
from tests.task_commands import a_claimed, complete, create, fail, sweep, take, take_this

TEN_YEARS = 3650 * DAY
HOUR = 3600 * SECOND


@pytest.fixture
def jumped(store, clock):
    """A store that was used at START, then in a boot ten years ahead; now the wall clock is right again."""
    transact(store, create("done"))
    transact(store, take_this("done"))
    transact(store, complete("done"))
    clock.now = START + TEN_YEARS
    transact(store, claim("job", "l1"))
    clock.now = START + DAY
    return store


def test_a_store_clock_that_is_ahead_purges_nothing(jumped):
    Cleanup(jumped, lambda commands: transact(jumped, *commands) if commands else [], Retention()).run()
    assert [task.id for task in every(jumped, Task)] == ["done"]


def test_in_a_boot_that_is_far_ahead_of_the_last_one_nothing_is_purged_for_a_day(opened, clock, caplog):
    store = opened("sqlite", clock)
    transact(store, create("done"))
    transact(store, take_this("done"))
    transact(store, complete("done"))
    store._writer.execute("UPDATE state SET boot_id = 'an earlier boot'")
    clock.now = START + TEN_YEARS
    store = opened("sqlite", clock)
    cleanup = Cleanup(store, lambda commands: transact(store, *commands) if commands else [], Retention())
    cleanup.run()
    assert [task.id for task in every(store, Task)] == ["done"]
    assert "doctor --set-clock" in caplog.text
    cleanup._began -= 25 * 3600
    cleanup.run()
    assert every(store, Task) == []


def test_schedules_follow_the_wall_clock(jumped, clock):
    transact(jumped, create("later", scheduled_at=clock.now + HOUR))
    assert isinstance(run(jumped, take("work")), Empty)
    with pytest.raises(NotYetClaimable, match="in 3600 s"):
        run(jumped, take_this("later"))
    sweep(jumped)
    with jumped.read() as reader:
        assert reader.row(Task, ACCOUNT, "later").ready is False
    clock.advance(3600)
    sweep(jumped)
    with jumped.read() as reader:
        assert reader.row(Task, ACCOUNT, "later").ready is True
    with pytest.raises(Invalid, match="in the future"):
        run(jumped, create("late", scheduled_at=clock.now))


def test_a_retry_is_due_after_its_delay_by_the_wall_clock(jumped, clock):
    transact(jumped, create("again", max_attempts=3))
    transact(jumped, take_this("again"))
    (failed,) = transact(jumped, fail("again", after=60 * SECOND))
    assert (failed.task.scheduled_at, failed.task.ready) == (clock.now + 60 * SECOND, False)
    clock.advance(60)
    assert [each.task.id for each in run(jumped, take("work")).taken] == ["again"]


def test_the_next_deadline_counts_a_schedule_by_the_wall_clock(jumped, clock):
    with jumped.read() as reader:
        before = reader.next_deadline() - reader.now
    transact(jumped, create("soon", scheduled_at=clock.now + 5 * SECOND))
    with jumped.read() as reader:
        assert before == 60 * SECOND or jumped.name == "postgres"
        assert reader.next_deadline() - reader.now == 5 * SECOND


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_setting_the_clock_right_leaves_holders_the_time_they_have(opened, clock, kind):
    store = opened(kind, clock)
    transact(store, create("first"))
    clock.now = START + TEN_YEARS
    transact(store, create("held"), create("second"))
    transact(store, claim("job", "l1"), take_this("held"))
    put(store, a_session(ends=clock.now + 30 * SECOND))
    clock.now = START + DAY
    ahead, moved = set_clock_right(store)
    assert (ahead, moved) == (TEN_YEARS - DAY, 4)
    with store.read() as reader:
        assert reader.now == clock.now
        assert reader.row(Lease, ACCOUNT, "job").expires_at == clock.now + 60 * SECOND
        assert reader.row(Task, ACCOUNT, "held").expires_at == clock.now + 300 * SECOND
        assert reader.row(Session, ACCOUNT, "s1").expires_at == clock.now + 30 * SECOND
    assert [each.task.id for each in run(store, take("work", limit=2)).taken] == ["first", "second"]
    check_log(store)
    assert set_clock_right(store) == (0, 0)


@pytest.mark.parametrize(
    "row",
    [
        a_lease(ends=START - 1),
        a_lease(ends=None),
        a_session(ends=START + 99, ended_at=START),
        a_claimed(state=PENDING, expires_at=None, scheduled_at=START + HOUR, created_at=START - 1),
        ALICE,
    ],
    ids=["over", "free", "ended session", "scheduled task", "key"],
)
def test_times_that_were_not_set_by_the_wrong_clock_stay(row):
    assert move_back(row, TEN_YEARS, START) == row


def test_a_delay_before_the_next_claim_moves_with_the_clock():
    delayed = a_lock(ends=None, available_at=START + TEN_YEARS + SECOND)
    assert move_back(delayed, TEN_YEARS, START).available_at == START + SECOND
