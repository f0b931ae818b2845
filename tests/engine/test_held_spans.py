"""Spans of random logs: the same as found by replaying every row, and none is invented where the log is cut."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from holdfast.core.event import REMOVAL_VERBS, RENEWALS, Event, is_whole
from holdfast.core.holdings.spans import HELD, held_spans
from holdfast.core.lease import UNDELIVERED, Lease, is_live
from holdfast.core.reservation.row import Reservation
from holdfast.core.task import Task
from tests.engine.reservation_script import RESERVATION_VERBS, ReservationScript
from tests.engine.script import ACCOUNTS, LEASE_VERBS, Script
from tests.engine.task_script import TASK_VERBS, TaskScript
from tests.engine.test_differential import pass_time, scripts
from tests.proof_size import sized
from tests.support import START, empty, every, transact

NOUNS = {"lease", "reservation", "task"}


@pytest.fixture
def memory(opened, clock):
    return opened("memory", clock)


def quick(test: Any) -> Any:
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    phases = [Phase.explicit, Phase.reuse, Phase.generate]  # a log of many batches shrinks slowly
    return settings(max_examples=sized(12, 100), suppress_health_check=checks, phases=phases)(test)


@quick
@given(steps=scripts(LEASE_VERBS), cut=st.floats(0, 1))
def test_spans_of_leases_are_those_of_the_replayed_rows(memory, clock, steps, cut):
    check(memory, clock, Script(), steps, cut)


@quick
@given(steps=scripts(TASK_VERBS), cut=st.floats(0, 1))
def test_spans_of_tasks_are_those_of_the_replayed_rows(memory, clock, steps, cut):
    check(memory, clock, TaskScript(clock), steps, cut)


@quick
@given(steps=scripts(RESERVATION_VERBS))
def test_spans_of_reservations_are_those_of_the_replayed_rows(memory, clock, steps):
    """The log is not cut: the script grants ended reservations again, and then the row has another owner."""
    check(memory, clock, ReservationScript(clock), steps, cut=1.0)


def check(store: Any, clock: Any, script: Any, steps: list[Any], cut: float) -> None:
    clock.now = START
    empty(store)
    for how, drawn in [("stay", None), *steps]:
        pass_time(how, clock, store)
        commands = script.initial_commands() if drawn is None else script.batch(drawn)
        if commands:
            script.record_outcomes(commands, transact(store, *commands))
    for account in ACCOUNTS:
        log = [event for event in every(store, Event) if event.account == account and event.kind not in RENEWALS]
        rows = [row for kind in (Lease, Reservation, Task) for row in every(store, kind) if row.account == account]
        ended = [row for row in rows if isinstance(row, Reservation) and row.ended_at is not None]
        rows = [*(row for row in rows if is_live(row, clock.now)), *ended]
        whole = described(log, rows, clock.now)
        assert whole == sorted(replayed(log, clock.now), key=str)
        for part in described(log[int(cut * len(log)) :], rows, clock.now):
            assert any(matches(part, each) for each in whole), part


def described(log: list[Event], rows: list[Any], now: int) -> list[tuple[Any, ...]]:
    found = held_spans(log, rows, now)
    return sorted(
        ((each.noun, each.id, each.owner, each.session, each.kind, each.since, each.until, each.how == HELD)
         for each in found), key=str,
    )  # fmt: skip


def matches(part: tuple[Any, ...], whole: tuple[Any, ...]) -> bool:
    """Whether they are the same, but for what only its first events say: owner, session and beginning."""
    return all(
        mine == theirs or (place in {2, 3, 5} and mine is None)
        for place, (mine, theirs) in enumerate(zip(part, whole, strict=True))
    )


def replayed(log: list[Event], now: int) -> list[tuple[Any, ...]]:
    """The times during which a row has the same lease id; one that is reissued to a resumed session goes on."""
    images: dict[str, dict[str, Any]] = {}
    begun: dict[str, tuple[Any, ...]] = {}
    found = []
    for event in log:
        noun, _, row_id = event.subject.partition(":")
        if noun not in NOUNS:
            continue
        verb, data = event.kind.partition(".")[2], msgspec.json.decode(event.data)
        before = images.get(event.subject, {})
        after = {} if verb in REMOVAL_VERBS else data if is_whole(data) else before | data
        images[event.subject] = after
        if after.get("proof") == before.get("proof") or verb == "reissued":
            continue
        if verb == "reserved" and event.subject in begun:  # the same request, granted again
            continue
        if event.subject in begun:
            span = begun.pop(event.subject)
            if verb != UNDELIVERED:
                found.append((*span, event.at, False))
        if after.get("proof") is not None:
            owner = after.get("worker" if noun == "task" else "owner")
            kind = after["kind"] if noun == "lease" else noun
            begun[event.subject] = (noun, row_id, owner, after.get("session"), kind, event.at)
    return [*found, *((*span, now, True) for span in begun.values())]
