"""After an outage holders of jobs get grace; not after a clean stop, and not for locks."""

from __future__ import annotations

import time
from typing import Any

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.core.lease import LOCK, Lease
from holdfast.core.row import SECOND
from holdfast.engine import expiry, lane
from holdfast.engine.backlog import Backlog
from holdfast.engine.command import Held
from holdfast.engine.expiry import GiveGrace
from holdfast.engine.lane import Lane
from holdfast.engine.outages import Outages
from holdfast.engine.sweep import Sweep
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs.job_claims import Claimed, ClaimJob
from tests.damaged_records import NOT_UTF8, write
from tests.support import (
    ACCOUNT,
    CAUSE,
    START,
    DrivenClock,
    Keep,
    a_lease,
    check_log,
    claim,
    put,
    run,
    stop_in_time,
    transact,
    wait_until,
)


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request):
    return request.param


@pytest.fixture
def served(opened, clock, kind):
    """A store whose server was killed just after its last beat, with one job of a minute and one of three seconds."""
    store = opened(kind, clock)
    put(store, a_lease("long"), a_lease("short", ends=START + 3 * SECOND, ttl=3 * SECOND), a_lease("lock", kind=LOCK))
    store.beat()
    return store


def deadline(store, name):
    with store.read() as reader:
        return reader.row(Lease, ACCOUNT, name).expires_at


@pytest.mark.parametrize(
    ("outage", "ttl", "expected_grace"), [(6, 60, 10), (20, 60, 20), (600, 60, 60), (600, 3, 10), (3600, 3600, 3600)]
)
def test_grace_is_the_outage_but_no_more_than_the_ttl_and_ten_seconds_at_least(outage, ttl, expected_grace):
    assert expiry.grace(outage * SECOND, ttl * SECOND) == expected_grace * SECOND


def test_a_restarted_server_gives_jobs_time_to_renew(served, clock, started):
    clock.advance(100)
    engine = started(served, serving=True)
    assert deadline(served, "long") == clock.now + 60 * SECOND
    assert deadline(served, "short") == clock.now + 10 * SECOND
    assert isinstance(engine.call(claim("short", "l9")), Held)
    check_log(served)


def test_grace_never_shortens_a_lease(served, clock, started):
    clock.advance(6)
    started(served, serving=True)
    assert deadline(served, "long") == START + 60 * SECOND


def test_locks_get_no_grace(served, clock, started):
    clock.advance(100)
    started(served, serving=True)
    wait_until(lambda: deadline(served, "lock") is None)


def test_a_short_absence_gives_no_grace(served, clock, started):
    clock.advance(5)
    started(served, serving=True)
    wait_until(lambda: deadline(served, "short") is None)


def test_a_clean_stop_gives_no_grace(served, clock, started):
    served.close_outage(served.beat()[1])
    clock.advance(100)
    started(served, serving=True)
    wait_until(lambda: deadline(served, "long") is None)


def test_a_server_that_stops_on_purpose_records_it(opened, clock, kind, started):
    store = opened(kind, clock)
    engine = started(store, serving=True)
    engine.call(claim("job", "l1"))
    wait_until(lambda: store.last_beat() is not None)
    stop_in_time(engine)
    assert store.last_beat() is None


def test_a_program_beside_a_killed_server_gives_the_grace_that_the_server_would_give(served, clock, started):
    clock.advance(100)
    engine = started(served)
    assert isinstance(engine.call(claim("long", "l9")), Held)
    assert deadline(served, "long") == clock.now + 60 * SECOND
    assert deadline(served, "short") == clock.now + 10 * SECOND
    check_log(served)


@pytest.mark.parametrize("kind", ["sqlite"])  # PostgreSQL refuses such an id
def test_a_held_row_whose_id_is_not_utf8_costs_no_other_holder_its_grace(served, clock, started):
    put(served, a_lease("bad"))
    write(served, f"UPDATE leases SET id = {NOT_UTF8} WHERE id = 'bad'")
    clock.advance(100)
    assert isinstance(started(served).call(claim("long", "l9")), Held)
    assert deadline(served, "long") == clock.now + 60 * SECOND


def test_grace_reaches_more_holders_than_one_batch_has(served, clock, started, monkeypatch):
    monkeypatch.setattr(lane, "MAX_BATCH", 2)
    transact(served, *(claim(f"job-{number}", f"l{number}", ttl=60 * SECOND) for number in range(5)))
    clock.advance(100)
    started(served).call(claim("other", "l9"))
    assert {deadline(served, f"job-{number}") for number in range(5)} == {clock.now + 60 * SECOND}


def test_the_sweep_of_a_program_gives_this_grace_by_itself(served, clock, started):
    clock.advance(100)
    started(served)
    wait_until(lambda: deadline(served, "short") == clock.now + 10 * SECOND, seconds=10)


def test_programs_give_grace_once_however_many_are_started(served, clock, started):
    clock.advance(100)
    first = started(served)
    first.call(claim("other", "l8"))
    stop_in_time(first)  # two engines cannot use the connections of one store
    clock.advance(61)
    assert isinstance(started(served).call(claim("long", "l9")), Claimed)
    assert served.last_beat() is None


def test_a_server_that_returns_while_a_program_gives_grace_is_not_taken_for_gone(served, clock):
    last_beat = served.last_beat()[0]
    clock.advance(100)
    served.beat()
    served.close_outage(last_beat)
    assert served.last_beat() is not None


def test_a_program_that_saw_an_old_heartbeat_looks_again_as_soon_as_that_would_be_an_outage(served, clock):
    """The server was killed right after it. Five seconds after the first look, a holder would have lost its job."""
    seconds, replies = Seconds(), []
    outages = Outages(serving=False, clock=seconds)
    sweep = Sweep(served, None, outages, serving=False)
    lane = Lane(
        0, served, Backlog(), outages,
        on_commit=lambda done: replies.extend(done.replies), on_return=sweep.grace_commands,
    )  # fmt: skip
    for name, passed in (("other", 4), ("short", 2)):
        clock.advance(passed)
        seconds.now += passed
        lane._work([Ticket(claim(name, "l9"), Keep())])
    assert [type(outcome) for _, outcome in replies] == [Claimed, Held]


def test_a_program_that_claims_while_a_server_is_idle_gets_no_more_than_its_ttl(opened, clock, kind, started):
    """A server without leases to keep writes no heartbeat, so its last one may be old."""
    store = opened(kind, clock)
    store.beat()
    clock.advance(3600)
    put(store, a_lease("new", ends=clock.now + 3 * SECOND, ttl=3 * SECOND))
    started(store).call(claim("other", "l8"))
    assert deadline(store, "new") == clock.now + 3 * SECOND


def test_a_program_leaves_expiry_to_a_server_that_runs(served, clock, started):
    """If that server was killed less than five seconds ago, its holders are still to get grace."""
    clock.advance(4)
    engine = started(served)
    for _ in range(2):  # when the second pass begins, the first has ended what it found
        engine.sweep.swept_at = None
        engine.sweep.wake()
        wait_until(lambda: engine.sweep.swept_at is not None, seconds=10)
    assert deadline(served, "short") == START + 3 * SECOND


def test_an_engine_in_a_script_writes_no_heartbeat(opened, clock, kind, started):
    store = opened(kind, clock)
    engine = started(store)
    engine.call(claim("job", "l1"))
    stop_in_time(engine)
    assert store.last_beat() is None


@pytest.mark.parametrize(
    ("row", "expected_grace"),
    [
        (a_lease(ends=START + 1), True),
        (a_lease(ends=START), False),
        (a_lease(ends=START + 1, kind=LOCK), False),
        (a_lease(ends=START + 999 * SECOND), False),
        (a_lease(ends=None), False),
    ],
    ids=["live at the last beat", "expired at the last beat", "a lock", "expires later anyway", "free"],
)
def test_grace_is_given_to_jobs_that_were_live_at_the_last_beat(memory, clock, row, expected_grace):
    put(memory, row)
    clock.advance(100)
    assert run(memory, GiveGrace(account=ACCOUNT, cause=CAUSE, key=row.key, last_beat=START)) is expected_grace


def test_a_server_that_was_paused_gives_grace_before_anything_expires(served, clock):
    """After SIGSTOP or suspend nothing failed, but no holder could renew. The lane may run before the sweep."""
    outages = Outages()
    sweep = Sweep(served, None, outages, serving=True)
    replies = []
    lane = Lane(
        0,
        served,
        Backlog(),
        outages,
        on_commit=lambda done: replies.extend(done.replies),
        on_return=sweep.grace_commands,
    )
    clock.advance(100)
    outages.last_run -= 100
    lane._work([Ticket(claim("short", "l9"), Keep())])
    assert isinstance(replies[0][1], Held)
    assert deadline(served, "short") == clock.now + 10 * SECOND
    assert not outages.is_paused()


def test_a_server_that_is_killed_before_its_first_pass_has_an_outage_too(opened, clock, kind):
    store = opened(kind, clock)
    Sweep(store, None, Outages(), serving=True).recover()
    assert store.last_beat() == (START, START)


@pytest.mark.parametrize(("changed_after", "expected_grace"), [(0, True), (4, True), (6, False)])
def test_a_program_skips_only_what_changed_when_no_server_ran_any_more(memory, clock, changed_after, expected_grace):
    """A server runs for up to five seconds after the heartbeat that turns out to be its last."""
    clock.advance(changed_after)
    put(memory, a_lease())
    clock.advance(100)
    command = GiveGrace(
        account=ACCOUNT, cause=CAUSE, key=a_lease().key, last_beat=START, unless_changed_since=True
    )  # fmt: skip
    assert run(memory, command) is expected_grace


def test_a_paused_server_gives_grace_although_another_process_recorded_that_none_is_due(served, clock):
    """Another server stopped on purpose meanwhile, or a program gave grace before the last changes were seen."""
    outages = Outages()
    sweep = Sweep(served, None, outages, serving=True)
    served.close_outage(served.beat()[1])
    assert sweep.grace_commands() == []
    outages.last_run -= 100
    clock.advance(100)
    assert {command.key[2] for command in sweep.grace_commands()} == {"long", "short"}
    sweep.close_outage()
    assert served.last_beat() == (clock.now, clock.now)


def test_a_server_that_stops_right_after_a_pause_leaves_its_holders_their_grace(served, clock):
    outages = Outages()
    sweep = Sweep(served, None, outages, serving=True)
    outages.last_run -= 100
    clock.advance(100)
    sweep.record_stop()
    assert served.last_beat() is not None


def test_a_server_that_stops_right_after_an_outage_leaves_its_holders_their_grace(served, clock, monkeypatch):
    """The database is back, and the next pass of the sweep, which would give grace, has not begun."""
    sweep = Sweep(served, None, Outages(), serving=True)
    with monkeypatch.context() as patched:
        patched.setattr(served, "check_minimum_schema", unreachable)
        clock.advance(100)
        sweep.run_pass()
    sweep.record_stop()
    assert served.last_beat() is not None


class Seconds:
    """A clock of this process that the test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def two_servers(store, clock):
    seconds = Seconds()
    servers = [Sweep(store, None, Outages(clock=seconds), serving=True) for _ in range(2)]
    for sweep in servers * 2:
        clock.advance(1)
        sweep.recover()
    return *servers, seconds


def test_a_server_that_stops_beside_another_leaves_the_heartbeats_to_it(served, clock):
    """If the other one is killed at once, its holders get grace."""
    stops, stays, seconds = two_servers(served, clock)

    def other_goes_on(_):
        clock.advance(1)
        stays.recover()

    stops.heartbeat.wait = other_goes_on
    stops.record_stop()
    assert served.last_beat() is not None
    for _ in range(7):
        seconds.now += 1
        other_goes_on(None)
    stays.heartbeat.wait = pytest.fail
    stays.record_stop()
    assert served.last_beat() is None


def test_the_last_of_servers_that_stop_together_records_it(served, clock):
    first, second, _ = two_servers(served, clock)

    def other_stops_too(_):
        clock.advance(1)
        second.heartbeat.write()

    first.heartbeat.wait = other_stops_too
    first.record_stop()
    assert served.last_beat() is not None
    second.heartbeat.wait = lambda seconds: None
    second.record_stop()
    assert served.last_beat() is None


def test_a_pause_just_before_a_heartbeat_is_an_outage_too(served, clock):
    seconds = Seconds()
    sweep = Sweep(served, None, Outages(clock=seconds), serving=True)
    seconds.now += 100
    clock.advance(100)
    sweep.heartbeat.write()
    assert {command.key[2] for command in sweep.grace_commands()} == {"short", "long"}
    sweep.close_outage()
    seconds.now = 0.0
    assert sweep.grace_commands() == []


def test_grace_that_failed_is_not_excused_by_another_damaged_row(served, clock):
    sweep = Sweep(served, lambda command, sink, future: future.set_result(None), Outages(), serving=True)
    sweep.failed_rows._new = [(Lease.table, ACCOUNT, f"damaged {number}") for number in range(9)]
    clock.advance(100)
    with pytest.raises(StoreUnavailable, match="every holder"):
        sweep.recover()


def unreachable():
    raise StoreUnavailable("the database cannot be reached")


def test_a_machine_that_slept_counts_as_a_paused_server(monkeypatch):
    """The boot clock runs while the machine sleeps; the monotonic clock stands still."""
    outages = Outages()
    read = time.clock_gettime
    asleep = {time.CLOCK_BOOTTIME: 100.0}
    assert not outages.is_paused()
    monkeypatch.setattr(time, "clock_gettime", lambda clock: read(clock) + asleep.get(clock, 0.0))
    assert outages.is_paused()


class Timed(ClaimJob, frozen=True):
    """A command that takes a time."""

    seconds: float = 0.0
    machine: Any = None

    def decide(self, view):
        self.machine.advance(self.seconds)
        return super().decide(view)


@pytest.fixture
def timed(memory):
    """Runs claims that take a time in one lane; returns how often grace was given so far."""
    machine, calls = DrivenClock(0), []
    outages = Outages(clock=lambda: machine.now / SECOND)
    lane = Lane(
        0, memory, Backlog(), outages, on_commit=lambda _: None, on_return=lambda: calls.append(1) or [],
    )  # fmt: skip

    def timed(name, seconds):
        base = claim(name, name)
        fields = {field: getattr(base, field) for field in base.__struct_fields__}
        lane._work([Ticket(Timed(**(fields | {"seconds": seconds, "machine": machine})), Keep())])
        return len(calls)

    return timed


def test_a_server_that_is_slow_but_works_is_not_taken_for_paused(timed):
    """Grace for thousands of holders takes longer than a pause may; it was given again and again on a busy machine."""
    assert [timed(f"job-{number}", 3) for number in range(4)] == [0] * 4


def test_a_batch_that_took_longer_than_a_pause_is_none_if_the_sweep_ran_meanwhile():
    seconds = Seconds()
    outages = Outages(clock=seconds)
    began = outages.now()
    seconds.now += 6
    outages.record_run(outages.now())  # the sweep
    outages.record_run(began)  # the batch
    assert not outages.is_paused()


def test_a_pause_in_the_middle_of_a_batch_is_noticed_before_the_next(timed):
    assert timed("first", 100) == 0
    assert timed("second", 0) == 1
    assert timed("third", 0) == 1


def test_a_server_stopped_in_the_middle_of_a_pass_does_not_hide_that_by_a_heartbeat(served, clock):
    outages = Outages()
    sweep = Sweep(served, None, outages, serving=True)
    before = served.last_beat()[0]
    outages.last_run -= 100
    clock.advance(100)
    assert sweep._run_once() == 0.0
    assert served.last_beat()[0] == before


def test_grace_for_more_jobs_than_the_backlog_holds_is_given_in_groups(opened, clock, started):
    store = opened("sqlite", clock)
    put(store, *(a_lease(f"job-{number:04}") for number in range(2_500)))
    store.beat()
    clock.advance(100)
    engine = started(store, serving=True, max_queued=1_000)
    assert isinstance(engine.call(claim("job-2499", "l9")), Held)
    assert deadline(store, "job-0000") == deadline(store, "job-2499") == clock.now + 60 * SECOND
