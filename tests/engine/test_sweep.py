"""The sweep: leases and sessions end within moments of their deadline, without a request."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.core.lease import EXPIRED, SESSION_ENDED, Lease, last_ending
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine import sweep
from holdfast.engine.sweep import MAX_SLEEP, expiry_command
from tests.support import ACCOUNT, a_lease, a_session, check_log, claim, every, put, wait_until

pytestmark = pytest.mark.waits(6)


def row_of(engine, name="job"):
    return engine.read(lambda reader: reader.row(Lease, ACCOUNT, name))


def test_an_expired_lease_is_ended_without_a_request(engine):
    claimed = engine.call(claim("job", "l1", ttl=SECOND // 4))
    wait_until(lambda: row_of(engine).proof is None)
    ending = last_ending(row_of(engine))
    assert ending.how == EXPIRED
    assert 0 <= ending.at - claimed.lease.expires_at < SECOND
    check_log(engine.store)


def test_an_expired_session_frees_what_it_held_in_one_transaction(engine):
    now = engine.read(lambda reader: reader.now)
    put(
        engine.store, a_session("s1", ends=now + SECOND // 4),
        *(a_lease(name, session="s1", ephemeral=True, ends=now + 60 * SECOND) for name in ("a", "b")),
        a_lease("c", session="s1", ends=now + 60 * SECOND),
    )  # fmt: skip
    engine.sweep.wake()
    wait_until(lambda: every(engine.store, Session)[0].ended_at is not None)
    held = {row.id: row.proof is not None for row in every(engine.store, Lease)}
    assert held == {"a": False, "b": False, "c": True}
    endings = [last_ending(row) for row in every(engine.store, Lease)[:2]]
    assert [ending.how for ending in endings] == [SESSION_ENDED] * 2
    assert {ending.at for ending in endings} == {every(engine.store, Session)[0].ended_at}
    check_log(engine.store)


def test_many_deadlines_at_once_are_all_swept(engine):
    now = engine.read(lambda reader: reader.now)
    put(engine.store, *(a_lease(f"job-{number}", ends=now + SECOND // 5) for number in range(300)))
    engine.sweep.wake()
    wait_until(lambda: engine.read(lambda reader: reader.next_deadline()) is None)
    check_log(engine.store)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_deadlines_of_a_killed_server_are_swept_by_another_within_a_second(opened, started, kind):
    other, engine = opened(kind), started(opened(kind))
    with other.read() as reader:
        now = reader.now
    put(other, a_lease("job", ends=now + SECOND // 5))
    began = time.monotonic()
    wait_until(lambda: row_of(engine).proof is None)
    assert time.monotonic() - began < 0.2 + 1.0 + 0.2


def test_a_sweep_that_cannot_read_the_store_waits_before_it_tries_again(opened, started, monkeypatch):
    engine, failures = started(opened("memory"), serving=True), []

    def unavailable():
        failures.append(time.monotonic())
        raise StoreUnavailable("gone")

    monkeypatch.setattr(engine.store, "last_beat", unavailable)
    monkeypatch.setattr(engine.store, "read", unavailable)
    wait_until(lambda: len(failures) >= 3, seconds=15)
    pauses = [after - before for before, after in pairwise(failures)]
    monkeypatch.undo()
    assert min(pauses) > MAX_SLEEP / 2


@pytest.mark.parametrize("how", ["wake", "expect"])
def test_a_wake_up_during_a_pass_causes_another_pass(opened, started, monkeypatch, how):
    """It must not be lost because the sweep was awake: another process, or a lane, has set a nearer deadline."""
    monkeypatch.setattr(sweep, "MAX_SLEEP", 60.0)
    engine = started(opened("memory"))
    run_once, passes = engine.sweep._run_once, []

    def run_and_wake():
        seconds = run_once()
        passes.append(how)
        if len(passes) == 2:
            engine.sweep.wake() if how == "wake" else engine.sweep.expect(SECOND // 10, 0)
        return seconds

    monkeypatch.setattr(engine.sweep, "_run_once", run_and_wake)
    engine.sweep.wake()
    wait_until(lambda: len(passes) == 1)
    engine.sweep.expect(SECOND // 10, 0)
    wait_until(lambda: len(passes) >= 3, 10)


def test_more_commands_than_one_round_has_are_all_run(opened, started, monkeypatch):
    monkeypatch.setattr(sweep, "MAX_DUE", 3)
    engine = started(opened("memory"))
    commands = [expiry_command((Task.table, ACCOUNT, f"t{number}")) for number in range(7)]
    assert engine.sweep._run_all(commands) == [False] * 7
