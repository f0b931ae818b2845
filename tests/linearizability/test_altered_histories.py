"""The check finds histories that were altered into ones that a broken server would leave."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.store.memory.store import MemoryStore
from tests.linearizability.checks.log_order import Violation, check_log_order, check_numbers
from tests.linearizability.checks.search import has_order
from tests.linearizability.checks.whole_check import check, check_tokens, shortest_part
from tests.linearizability.history import FOREVER, load_history
from tests.linearizability.in_process import TTL, record
from tests.support import DrivenClock


@pytest.fixture(scope="module")
def recorded():
    clock = DrivenClock()
    history = record([MemoryStore(clock)], clock, seed=12, calls=700, groups=4, fault_rate=0.0)
    check(history)
    return history


@pytest.fixture
def history(recorded):
    return copy.deepcopy(recorded)


def calls_of(history, verb, answer):
    return [call for call in history.calls if call.verb == verb and call.answer["is"] == answer]


def two_holders_at_once(history):
    for call in calls_of(history, "claim_job", "held"):
        until = call.answer["now"] + call.args["ttl"]
        call.answer |= {"is": "granted", "token": FOREVER, "proof": call.args["proof"], "expires_at": until}
        yield call


def a_stale_renewal_accepted(history):
    for call in calls_of(history, "heartbeat_job", "lost"):
        call.answer = {"is": "renewed", "expires_at": None, "now": call.latest}
        yield call


def a_token_granted_twice(history):
    tokens = {}
    for call in sorted(calls_of(history, "claim_job", "granted"), key=lambda call: call.answer["token"]):
        if call.args["job"] in tokens:
            call.answer["token"] = tokens[call.args["job"]]
            yield call
        tokens[call.args["job"]] = call.answer["token"]


def an_early_expiry(history):
    for call in calls_of(history, "heartbeat_task", "renewed"):
        call.answer = {"is": "lost", "held_by": None, "now": call.answer["now"]}
        yield call


def a_read_that_misses_a_write(history):
    for call in calls_of(history, "read_job", "claimed"):
        call.answer["owner"] = "the owner before"
        yield call


def a_read_that_misses_a_renewal(history):
    for call in calls_of(history, "read_job", "claimed"):
        call.answer["expires_at"] -= TTL // 4
        yield call


def a_task_completed_twice(history):
    for call in calls_of(history, "complete_task", "lost"):
        call.answer = {"is": "completed", "state": "completed", "now": call.latest}
        yield call


def a_task_given_to_two_workers(history):
    granted = {}
    for call in sorted(history.calls, key=lambda call: call.called):
        if call.verb == "claim_task" and call.answer["is"] == "granted":
            granted[call.group] = call.answer
        elif call.verb == "claim_task" and call.answer["is"] == "empty" and call.group in granted:
            twice = granted[call.group]
            call.answer = twice | {"token": FOREVER, "proof": "another", "now": call.answer["now"], "expires_at": None}
            yield call


def a_lease_left_behind_by_a_session(history):
    for call in calls_of(history, "read_session", "live"):
        if any(call.answer["jobs"].values()):
            call.answer["is"] = "over"
            yield call


def a_secret_that_was_not_asked_for(history):
    for call in calls_of(history, "open_session", "taken"):
        shown = {"generation": 99, "token": FOREVER, "proof": "another", "expires_at": None, "holds": {}}
        call.answer = {"is": "opened", **shown}
        yield call


ALTERATIONS = [
    two_holders_at_once,
    a_stale_renewal_accepted,
    a_token_granted_twice,
    an_early_expiry,
    a_read_that_misses_a_write,
    a_read_that_misses_a_renewal,
    a_task_completed_twice,
    a_task_given_to_two_workers,
    a_lease_left_behind_by_a_session,
    a_secret_that_was_not_asked_for,
]


@pytest.mark.parametrize("alter", ALTERATIONS)
def test_an_altered_answer_has_no_place_in_any_order(history, alter):
    call = next(iter(alter(history)))
    group = history.groups()[call.group]
    assert not has_order(group)
    with pytest.raises(Violation):
        check_log_order(history)
    part = shortest_part(group)
    assert part
    assert len(part) < len(group)
    assert not has_order(part)


def test_an_acknowledged_write_that_the_log_lacks_is_found(history):
    lost = calls_of(history, "create_task", "created")[0]
    subject = f"task:{lost.args['task']}"
    kept = [entry for entry in history.log if entry.subject != subject]
    history.log = [replace(entry, seq=number) for number, entry in enumerate(kept, start=1)]
    with pytest.raises(Violation):
        check_log_order(history)


def test_an_order_that_contradicts_the_times_of_calls_is_found(history):
    """The answers alone fit, but a call that takes effect first was made last."""
    first = calls_of(history, "create_task", "created")[0]
    moved = FOREVER - 10
    assert max(call.returned for call in history.calls) < moved
    first.called, first.returned = moved, moved + 1
    with pytest.raises(Violation):
        check_log_order(history)
    assert not has_order(history.groups()[first.group])


def test_a_token_that_is_smaller_than_one_granted_before_is_found(history):
    grants = sorted(calls_of(history, "claim_task", "granted"), key=lambda call: call.called)
    check_tokens(history.calls)
    grants[-1].answer["token"] = 0
    with pytest.raises(Violation):
        check_tokens(history.calls)


@pytest.mark.parametrize("field", ["seq", "version"])
def test_a_gap_in_the_log_is_found(history, field):
    place = len(history.log) // 2
    entry = history.log[place]
    history.log[place] = replace(entry, **{field: getattr(entry, field) + 1})
    with pytest.raises(Violation):
        check_numbers(history.log)


def test_a_failure_shows_the_calls_and_names_a_file_with_all_of_them(history):
    call = next(iter(a_read_that_misses_a_write(history)))
    with pytest.raises(AssertionError, match="read_job") as failure:
        check(history)
    words = str(failure.value).split()
    assert "owner=the owner before" in str(failure.value)
    (path,) = [word.rstrip(".") for word in words if "holdfast-history-" in word]
    kept = load_history(Path(path))
    Path(path).unlink()
    assert kept == history
    assert str(call) in str(failure.value)
