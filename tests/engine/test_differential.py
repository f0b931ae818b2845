"""Differential test: the same random batches give the same outcomes, rows, events and tokens on every store."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from holdfast.core.errors import Refused
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.offer import offer_of
from holdfast.core.question import OPEN, Question
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND
from holdfast.core.session import EXPIRED_REPORT_PERIOD, Session
from holdfast.core.task import ANSWER, CLAIMED, PENDING, Task
from holdfast.engine.verbs.batch import Outcomes
from holdfast.store.contract import TaskPath
from holdfast.store.rows import ROW_TYPES
from tests.engine.reservation_script import RESERVATION_VERBS, ReservationScript
from tests.engine.script import ACCOUNTS, LEASE_VERBS, Script, moves
from tests.engine.task_script import TASK_VERBS, TaskScript
from tests.proof_size import FULL
from tests.support import START, STORES, check_log, empty, every, transact

PARTS, EXAMPLES, STEPS = (8, 50, 80) if FULL else (1, 30, 30)

PASSING = st.sampled_from(["stay", "tick", "deadline", "deadline", "almost", "second", "long"])


def scripts(verbs: list[str]) -> Any:
    """Batches of these verbs, with some time before each."""
    return st.lists(st.tuples(PASSING, st.lists(moves(verbs), max_size=5)), min_size=STEPS // 2, max_size=STEPS)


def comparable(outcome: Any) -> Any:
    if isinstance(outcome, Refused):
        return type(outcome).__name__, outcome.message, outcome.facts
    if isinstance(outcome, BaseException):
        raise outcome
    if isinstance(outcome, Outcomes):
        return [comparable(each) for each in outcome.each]
    return outcome


def moments(store: Any) -> list[int]:
    """Every time at which a row expires or becomes due."""
    found = [at for row in every(store, Lease) for at in (row.expires_at, row.available_at) if at is not None]
    found += [at for row in every(store, Task) for at in (row.expires_at, row.scheduled_at) if at is not None]
    found += [
        offer.until for row in [*every(store, Lease), *every(store, Task)] if (offer := offer_of(row)) is not None
    ]
    for row in every(store, Reservation):
        found += [at for at in (row.expires_at, row.waits_until) if at is not None]
    found += [row.deadline_at for row in every(store, Question) if row.deadline_at is not None]
    for row in every(store, Session):
        found += [row.expires_at, row.expires_at + EXPIRED_REPORT_PERIOD]
    return found


def pass_time(how: str, clock: Any, store: Any) -> None:
    following = [at for at in moments(store) if at > clock.now]
    if how in {"deadline", "almost"}:
        clock.now = max(clock.now, min(following, default=clock.now) - (how == "almost"))
    else:
        clock.now += {"stay": 0, "tick": 1, "second": SECOND, "long": 20 * SECOND}[how]


def check_rows(store: Any) -> None:
    """Invariants of every row."""
    for row in every(store, Lease):
        held = [row.kind, row.proof, row.holder, row.principal, row.claimed_at, row.expires_at]
        assert all(part is None for part in held) or all(part is not None for part in held), row
        assert row.token >= 0
        assert '"token":-' not in (row.ended or ""), "a place for a token was left empty"
        assert row.session is None or row.proof is not None
        assert row.offer is None or (row.proof is not None and row.session is None), "an offered lease has no session"
    for row in every(store, Reservation):
        is_open = row.ended_at is None
        assert [row.proof is not None, row.waits_until is not None].count(True) == is_open, row
        assert (row.proof is None) == (row.expires_at is None), row
        assert row.token >= 0
    keys = set()
    for row in every(store, Task):
        held = [row.proof, row.principal, row.claimed_at, row.expires_at]
        assert [part is not None for part in held] == [row.state == CLAIMED] * 4, row
        assert row.token >= 0
        assert row.ready <= (row.state == PENDING)
        assert row.session is None or row.state == CLAIMED
        assert row.offer is None or (row.state == CLAIMED and row.session is None), "an offered task has no session"
        is_asking = row.state == PENDING and row.question is not None
        assert is_asking == (row.waits_for == ANSWER) or (is_asking and row.unmet), row
        if row.unique_key is not None and row.state in {PENDING, CLAIMED}:
            assert (row.account, row.unique_key) not in keys, f"two live tasks under {row.unique_key}"
            keys.add((row.account, row.unique_key))
    asking = [row for row in every(store, Task) if row.state == PENDING and row.question is not None]
    waiting = {(row.account, row.question) for row in asking}
    open_ones = {(row.account, row.id) for row in every(store, Question) if row.state == OPEN}
    assert waiting == open_ones, "a task waits exactly while its question is open"


@pytest.fixture
def three(opened, clock):
    return [opened(kind, clock) for kind in STORES]


def differential(test: Any) -> Any:
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    quick = settings(
        max_examples=EXAMPLES,
        suppress_health_check=checks,
        phases=[phase for phase in Phase if phase is not Phase.explain],
    )
    return pytest.mark.parametrize("part", range(PARTS))(quick(test))


@differential
@given(steps=scripts(LEASE_VERBS))
def test_the_same_batches_about_leases_have_the_same_effect_on_every_store(three, clock, part, steps):
    play(three, clock, Script(), steps)


@differential
@given(steps=scripts(TASK_VERBS))
def test_the_same_batches_about_tasks_and_sessions_have_the_same_effect_on_every_store(three, clock, part, steps):
    play(three, clock, TaskScript(clock), steps)


@differential
@given(steps=scripts(RESERVATION_VERBS))
def test_the_same_batches_about_reservations_have_the_same_effect_on_every_store(three, clock, part, steps):
    play(three, clock, ReservationScript(clock), steps)


def play(three: list[Any], clock: Any, script: Any, steps: list[Any]) -> None:
    clock.now = START
    for store in three:
        empty(store)
    memory = three[0]
    for how, drawn in [("stay", None), *steps]:
        pass_time(how, clock, memory)
        commands = script.initial_commands() if drawn is None else script.batch(drawn)
        if not commands:
            continue
        outcomes = [transact(store, *commands) for store in three]
        for store, others in zip(three[1:], outcomes[1:], strict=True):
            for command, other, expected in zip(commands, others, outcomes[0], strict=True):
                answers = f"{store.name} answers {command}\nwith {other}\nand not {expected}\nin the batch {commands}"
                assert comparable(other) == comparable(expected), answers
        script.record_outcomes(commands, outcomes[0])
    compare(three)


def compare(three: list[Any]) -> None:
    """Compare rows, events, tokens and all reads."""
    for store in three:
        check_log(store)
        check_rows(store)
    for record in (*ROW_TYPES, Event):
        for store in three[1:]:
            assert every(store, record) == every(three[0], record), f"{store.name} keeps other rows"
    for account in ACCOUNTS:
        reads = []
        for store in three:
            with store.read() as reader:
                listed = [
                    reader.tasks(account, path, "~", 9) for path in (TaskPath(), TaskPath("a"), TaskPath(tag="red"))
                ]
                paths = [reader.reservations_covering(account, "one", prefixes) for prefixes in (["a"], ["", "c"])]
                reads.append(
                    (
                        paths, reader.reservations(account, None, ("", ""), 50),
                        reader.reservations(account, "one", ("", ""), 2),
                        reader.questions(account, (0, ""), 3, is_open=True),
                        reader.questions(account, (2**60, ""), 3, is_open=False),
                        reader.due(100), reader.next_deadline(), reader.counts(account), reader.next_token(),
                        reader.task_counts(account), reader.held_at(START), listed, reader.log_bounds(account),
                    )
                )  # fmt: skip
        assert reads[1:] == reads[:1] * 2
