"""The moment a lease ends: not a moment early, hardly late, and one outcome for everybody who is near it."""

import itertools

import pytest

from tests.compat.orchestrion.contracts import begins_with, of_error, of_task, plain
from tests.compat.orchestrion.expect import envelope, task

pytestmark = pytest.mark.waits(31)

# Two clocks on one machine, and the milliseconds of the wire.
TOLERANCE_SECONDS = 0.003
# It should be a tenth of a second; the rest is for a machine that runs many tests at once.
RECOVERY_SECONDS = 0.5


def test_a_completion_beside_the_lapse_is_accepted_or_told_so_and_never_both(lapses):
    assert len(lapses.finishes) == len(lapses.racers)
    for racer, seen in zip(lapses.racers, lapses.finishes, strict=True):
        state = task(lapses.account.see(racer["id"]))
        if seen.answer.status == 200:
            assert state["status"] == "completed"
            assert seen.asked < TOLERANCE_SECONDS
        else:
            assert envelope(seen.answer, 409)["error"] == "lease_expired"
            assert plain(seen.answer.json["agent_contract"]) == of_error("lease_expired", racer["id"])
            assert (state["status"], state["attemptCount"]) == ("pending", 1)
            assert seen.told > -TOLERANCE_SECONDS


def test_a_lease_is_over_for_completions_from_its_last_moment_on(lapses):
    """Whoever was answered before the end was in time; whoever asked after it was not."""
    for seen in lapses.finishes:
        if seen.told < -TOLERANCE_SECONDS:
            assert seen.answer.status == 200, seen
        if seen.asked > TOLERANCE_SECONDS:
            assert seen.answer.status == 409, seen


def test_a_claim_by_id_takes_over_as_soon_as_the_lease_is_over_and_not_before(lapses):
    for *early, last in lapses.takeovers:
        assert early
        for seen in early:
            assert envelope(seen.answer, 409)["error"] == "task_currently_claimed"
        assert last.answer.status == 200, str(last.answer)
        assert (last.answer.json["status"], last.answer.json["attemptCount"]) == ("claimed", 2)
        assert last.told > -TOLERANCE_SECONDS
        assert last.asked < RECOVERY_SECONDS


def test_a_lapsed_task_is_seen_free_at_once_and_not_before_also_while_others_are_taken_over(lapses):
    for *early, last in lapses.looks:
        assert early
        assert {seen.answer.json["status"] for seen in early} == {"claimed"}
        assert last.answer.json["status"] == "pending"
        assert last.told > -TOLERANCE_SECONDS
        assert last.asked < RECOVERY_SECONDS


def test_a_claim_says_by_itself_when_its_lease_is_over(lapses):
    """Between the end and the sweep: claimed, no longer valid, and where to look."""
    for seen in itertools.chain(*lapses.looks):
        body = seen.answer.json
        contract = body["agent_contract"]
        assert begins_with(contract, of_task(body)), contract
        if seen.asked > TOLERANCE_SECONDS and body["status"] == "claimed":
            assert contract["lease_valid"] is False
        if seen.told < -TOLERANCE_SECONDS:
            assert contract["lease_valid"] is True
