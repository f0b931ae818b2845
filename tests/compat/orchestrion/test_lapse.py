"""A holder that stops renewing: the task can be claimed again, and the late holder is refused."""

import pytest

from tests.compat.orchestrion.expect import bare, claimed, envelope, ids_of, no_tasks, page, refused, task

pytestmark = pytest.mark.waits(31)

LATE = ("heartbeat", "complete", "fail")


def read_task(lapses, lost):
    return task(lapses.account.read_task(lost["id"]))


def test_a_lapsed_task_is_pending_and_its_attempt_counts(lapses):
    lost = read_task(lapses, lapses.left["idle"])
    assert (lost["status"], lost["attemptCount"], lost["failureReason"]) == ("pending", 1, None)
    assert (lost["leaseExpiresAt"], lost["scheduledAt"]) == (None, None)
    assert lost["updatedAt"] > lapses.left["idle"]["updatedAt"]


def test_a_lapsed_task_is_listed_as_pending(lapses):
    assert ids_of(page(lapses.account.list("type=idle&status=pending"))) == [lapses.left["idle"]["id"]]
    assert ids_of(page(lapses.account.list("type=idle&status=claimed"))) == []


@pytest.mark.parametrize("verb", LATE)
def test_a_late_holder_gets_lease_expired_and_changes_nothing(lapses, verb):
    lost = lapses.left["idle"]
    before = read_task(lapses, lost)
    for proof in ({}, {"lease_id": lost["leaseId"]}):
        refused(lapses.account.do(verb, lost["id"], **proof), 409, "lease_expired", lost["id"])
    assert read_task(lapses, lost) == before


@pytest.mark.parametrize("verb", LATE)
def test_a_late_holder_of_a_dead_letter_gets_lease_expired(lapses, verb):
    lost = lapses.exhausted
    before = read_task(lapses, lost)
    refused(lapses.account.do(verb, lost["id"]), 409, "lease_expired", lost["id"])
    assert read_task(lapses, lost) == before


def test_a_task_that_lapsed_on_its_last_attempt_is_a_dead_letter_with_a_cause(lapses):
    lost = read_task(lapses, lapses.exhausted)
    assert (lost["status"], lost["attemptCount"]) == ("dead_letter", 1)
    assert (lost["failureReason"], lost["deadLetterCause"]) == (None, "lease_expired")


def test_a_dead_letter_by_lapse_keeps_the_reason_of_the_failure_before(lapses):
    lost = read_task(lapses, lapses.reasoned)
    assert (lost["status"], lost["attemptCount"]) == ("dead_letter", 2)
    assert (lost["failureReason"], lost["deadLetterCause"]) == ("it broke", "lease_expired")


@pytest.mark.parametrize(("verb", "word"), [("claim", "invalid_transition"), ("cancel", "invalid_transition")])
def test_a_dead_letter_by_lapse_is_not_claimed_or_cancelled(lapses, verb, word):
    lost = lapses.exhausted
    refused(lapses.account.do(verb, lost["id"]), 409, word, lost["id"])
    no_tasks(lapses.account.claim(type="exhausted"))


def test_a_requeued_lapsed_task_answers_lease_expired_to_its_late_holder_until_the_next_claim(lapses):
    account, lost = lapses.account, lapses.reasoned
    again = task(account.do("requeue", lost["id"]))
    assert (again["status"], again["attemptCount"], again["failureReason"]) == ("pending", 0, "it broke")
    refused(account.do("heartbeat", lost["id"]), 409, "lease_expired", lost["id"])
    mine = claimed(account.claim(type="reasoned"))
    assert (mine["id"], mine["attemptCount"]) == (lost["id"], 1)
    assert task(account.complete(lost["id"]))["status"] == "completed"


def test_a_lapsed_task_is_claimed_again_and_belongs_to_its_new_holder(lapses):
    account, lost = lapses.account, lapses.left["any"]
    mine = claimed(account.claim(type="any", worker_id="second"))
    assert (mine["id"], mine["attemptCount"], mine["claimedBy"]) == (lost["id"], 2, "second")
    assert task(account.do("heartbeat", lost["id"]))["status"] == "claimed"
    assert task(account.complete(lost["id"]))["status"] == "completed"


def test_a_lapsed_task_is_claimed_again_by_id(lapses):
    account, lost = lapses.account, lapses.left["again"]
    mine = claimed(account.do("claim", lost["id"], worker_id="second"))
    assert (mine["attemptCount"], mine["claimedBy"]) == (2, "second")
    late = account.complete(lost["id"], lease_id=lost["leaseId"])
    assert envelope(late, 409)["error"] == "lease_superseded"
    failed = task(account.fail(lost["id"], reason="really"))
    assert (failed["status"], failed["failureReason"]) == ("pending", "really")
    refused(account.do("heartbeat", lost["id"]), 409, "invalid_transition", lost["id"])


def test_a_lapsed_task_can_be_cancelled(lapses):
    assert task(lapses.account.do("cancel", lapses.left["cancelled"]["id"]))["status"] == "cancelled"


def test_a_lapsed_task_is_not_requeued(lapses):
    lost = lapses.left["failed"]
    before = read_task(lapses, lost)
    refused(lapses.account.do("requeue", lost["id"]), 409, "invalid_transition", lost["id"])
    assert bare(read_task(lapses, lost)) == bare(before)


def test_a_holder_that_sent_a_heartbeat_keeps_its_task(lapses):
    """Both answers are old, so their remaining seconds are not checked."""
    renewed, kept = lapses.heartbeat.json, lapses.kept_afterwards.json
    assert (kept["status"], kept["attemptCount"]) == ("claimed", 1)
    assert kept["agent_contract"]["lease_valid"] is True
    assert kept["leaseExpiresAt"] == renewed["leaseExpiresAt"] > lapses.kept["leaseExpiresAt"]
