"""Requests around the end of a lease: it ends on time, and each task has one outcome."""

import itertools

import pytest

from tests.compat.orchestrion.contracts import begins_with, of_error, of_task, plain
from tests.compat.orchestrion.expect import envelope, task

pytestmark = pytest.mark.waits(31)

# Two clocks on one machine, and the milliseconds of the wire.
TOLERANCE_SECONDS = 0.003
# It should be a tenth of a second; the rest is for a machine that runs many tests at once.
RECOVERY_SECONDS = 0.5


def test_a_completion_near_the_expiry_is_either_accepted_or_refused(lapses):
    assert len(lapses.finishes) == len(lapses.racers)
    for racer, observed in zip(lapses.racers, lapses.finishes, strict=True):
        state = task(lapses.account.read_task(racer["id"]))
        if observed.answer.status == 200:
            assert state["status"] == "completed"
            assert observed.sent_after < TOLERANCE_SECONDS
        else:
            assert envelope(observed.answer, 409)["error"] == "lease_expired"
            assert plain(observed.answer.json["agent_contract"]) == of_error("lease_expired", racer["id"])
            assert (state["status"], state["attemptCount"]) == ("pending", 1)
            assert observed.answered_after > -TOLERANCE_SECONDS


def test_completions_are_refused_as_soon_as_the_lease_ends(lapses):
    """Answered before the end: accepted. Sent after the end: refused."""
    for observed in lapses.finishes:
        if observed.answered_after < -TOLERANCE_SECONDS:
            assert observed.answer.status == 200, observed
        if observed.sent_after > TOLERANCE_SECONDS:
            assert observed.answer.status == 409, observed


def test_a_claim_by_id_succeeds_as_soon_as_the_lease_ends(lapses):
    for *early, last in lapses.takeovers:
        assert early
        for observed in early:
            assert envelope(observed.answer, 409)["error"] == "task_currently_claimed"
        assert last.answer.status == 200, str(last.answer)
        assert (last.answer.json["status"], last.answer.json["attemptCount"]) == ("claimed", 2)
        assert last.answered_after > -TOLERANCE_SECONDS
        assert last.sent_after < RECOVERY_SECONDS


def test_a_lapsed_task_is_read_as_pending_as_soon_as_the_lease_ends(lapses):
    for *early, last in lapses.reads:
        assert early
        assert {observed.answer.json["status"] for observed in early} == {"claimed"}
        assert last.answer.json["status"] == "pending"
        assert last.answered_after > -TOLERANCE_SECONDS
        assert last.sent_after < RECOVERY_SECONDS


def test_a_claimed_task_is_marked_invalid_when_its_lease_ends(lapses):
    """Between the end and the sweep the task is claimed, its lease is invalid, and the advice is to read it."""
    for observed in itertools.chain(*lapses.reads):
        body = observed.answer.json
        contract = body["agent_contract"]
        assert begins_with(contract, of_task(body)), contract
        if observed.sent_after > TOLERANCE_SECONDS and body["status"] == "claimed":
            assert contract["lease_valid"] is False
        if observed.answered_after < -TOLERANCE_SECONDS:
            assert contract["lease_valid"] is True
