"""Histories of claims that wait for jobs: they fit one order, and no wake-up is lost."""

from __future__ import annotations

import copy

import pytest

from holdfast.engine.waiting.names import NameWaiters
from holdfast.store.memory.store import MemoryStore
from tests.linearizability.checks.log_order import Violation
from tests.linearizability.checks.wake_ups import check_wake_ups
from tests.linearizability.checks.whole_check import check
from tests.linearizability.in_process import record
from tests.proof_size import sized

pytestmark = pytest.mark.waits(4)

WITHIN_SECONDS = 1.5
WAIT_SECONDS = 3.0


def recorded(calls):
    waits = {"wait_seconds": WAIT_SECONDS, "groups": 2, "workers": 5, "group_calls": 500}
    return record([MemoryStore()], None, seed=7, calls=calls, fault_rate=0.0, **waits)


def test_claims_that_wait_fit_one_order_and_no_wake_up_is_lost():
    history = recorded(sized(150, 10_000))
    check(history)
    assert check_wake_ups(history, within_seconds=WITHIN_SECONDS) > 0
    altered = copy.deepcopy(history)
    for call in altered.calls:
        if call.args.get("wait_seconds") and call.answer["is"] == "granted":
            call.latest += 3 * 1_000_000
            call.answer = {"is": "held", "owner": None, "expires_at": None}
            altered.log = [entry for entry in altered.log if entry.request_id != call.id]
    with pytest.raises(Violation, match="free while this claim waited"):
        check_wake_ups(altered, within_seconds=WITHIN_SECONDS)


def test_a_lost_wake_up_planted_in_the_product_is_found(monkeypatch):
    monkeypatch.setattr(NameWaiters, "wake", lambda self, keys: None)
    history = recorded(80)
    with pytest.raises(Violation, match="free while this claim waited"):
        check_wake_ups(history, within_seconds=WITHIN_SECONDS)
