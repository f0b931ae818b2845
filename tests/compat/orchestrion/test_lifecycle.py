"""The fields of a task after each verb."""

import time

import pytest

from tests.compat.orchestrion.expect import assert_lasts, bare, claimed, envelope, instant, no_tasks, task
from tests.compat.orchestrion.states import STATES, completed, dead, held, pending


def test_a_heartbeat_restarts_the_lease(account):
    mine = held(account, leaseDurationSeconds=60)
    time.sleep(0.02)
    renewed = task(account.do("heartbeat", mine["id"]))
    assert instant(mine["leaseExpiresAt"]) < instant(renewed["leaseExpiresAt"])
    assert_lasts(renewed["leaseExpiresAt"], 60)
    for _ in range(3):
        assert_lasts(task(account.do("heartbeat", mine["id"]))["leaseExpiresAt"], 60)


def test_a_heartbeat_counts_no_attempt_and_keeps_the_label(account):
    made = pending(account)
    mine = claimed(account.do("claim", made["id"], worker_id="anna"))
    renewed = task(account.do("heartbeat", mine["id"]))
    assert (renewed["status"], renewed["attemptCount"], renewed["claimedBy"]) == ("claimed", 1, "anna")


@pytest.mark.parametrize(("duration", "hint"), [(30, 10), (31, 10), (59, 19), (100, 33), (300, 100), (3600, 1200)])
def test_the_advised_heartbeat_is_a_third_of_the_whole_lease(account, duration, hint):
    mine = held(account, leaseDurationSeconds=duration)
    renewed = task(account.do("heartbeat", mine["id"]))
    for actual in (
        mine["agent_contract"],
        task(account.read_task(mine["id"]))["agent_contract"],
        renewed["agent_contract"],
    ):
        assert actual["recommended_heartbeat_interval_seconds"] == hint
        assert duration - 2 <= actual["lease_expires_in_seconds"] <= duration


def test_completing_keeps_result_and_output_and_ends_the_lease(account):
    done = completed(account, result={"answer": 42}, output_id="out_1")
    assert (done["status"], done["result"], done["outputId"]) == ("completed", {"answer": 42}, "out_1")
    assert (done["leaseExpiresAt"], done["attemptCount"]) == (None, 1)
    assert task(account.read_task(done["id"])) == done


def test_failing_keeps_the_reason_and_counts_no_attempt(account):
    failed = task(account.fail(held(account)["id"], reason="no network"))
    assert (failed["status"], failed["failureReason"], failed["attemptCount"]) == ("pending", "no network", 1)
    assert (failed["leaseExpiresAt"], failed["scheduledAt"]) == (None, None)


def test_failing_with_a_delay_schedules_the_next_attempt(account):
    failed = task(account.fail(held(account)["id"], reason="busy", retry_after_seconds=120))
    assert_lasts(failed["scheduledAt"], 120)
    assert failed["failureReason"] == "busy"


def test_the_last_reason_is_stored(account):
    made = pending(account)
    for reason in ("first", "second"):
        claimed(account.claim())
        assert task(account.fail(made["id"], reason=reason))["failureReason"] == reason
    assert claimed(account.claim())["failureReason"] == "second"


def test_the_third_failure_of_three_is_the_last(account):
    made = pending(account)
    for attempt in (1, 2, 3):
        assert claimed(account.claim())["attemptCount"] == attempt
        failed = task(account.fail(made["id"], reason=f"failure {attempt}"))
        assert failed["attemptCount"] == attempt
        assert failed["status"] == ("dead_letter" if attempt == 3 else "pending")
    assert failed["failureReason"] == "failure 3"
    no_tasks(account.claim())


def test_a_task_with_one_attempt_is_a_dead_letter_after_its_first_failure(account):
    failed = task(account.fail(held(account, maxAttempts=1)["id"], reason="no good", retry_after_seconds=5))
    assert (failed["status"], failed["failureReason"], failed["attemptCount"]) == ("dead_letter", "no good", 1)


def test_a_dead_letter_that_failed_has_no_expiry_cause(account):
    assert dead(account).get("deadLetterCause") != "lease_expired"


def test_requeueing_resets_the_attempts_and_keeps_the_reason(account):
    lost = dead(account)
    again = task(account.do("requeue", lost["id"]))
    assert (again["status"], again["attemptCount"], again["scheduledAt"]) == ("pending", 0, None)
    assert again["failureReason"] == "no good"
    assert claimed(account.claim())["attemptCount"] == 1


def test_requeueing_clears_an_old_delay(account):
    """The delay of an earlier failure is still in the row when the last attempt fails."""
    mine = held(account, maxAttempts=2)
    task(account.fail(mine["id"], retry_after_seconds=0))
    claimed(account.claim())
    task(account.fail(mine["id"], retry_after_seconds=600))
    assert task(account.do("requeue", mine["id"]))["scheduledAt"] is None
    assert claimed(account.claim())["id"] == mine["id"]


def test_a_requeued_task_can_become_a_dead_letter_again(account):
    lost = dead(account)
    task(account.do("requeue", lost["id"]))
    claimed(account.claim())
    assert task(account.fail(lost["id"], reason="again"))["status"] == "dead_letter"


def test_a_cancelled_task_is_never_claimed(account):
    made = pending(account)
    gone = task(account.do("cancel", made["id"]))
    assert gone["status"] == "cancelled"
    unchanged = bare(made).keys() - {"status", "updatedAt"}
    assert {key: gone[key] for key in unchanged} == {key: made[key] for key in unchanged}
    no_tasks(account.claim())


CHANGES = [
    ("pending", "claim"),
    ("claimed", "complete"),
    ("claimed", "fail"),
    ("pending", "cancel"),
    ("dead_letter", "requeue"),
]


@pytest.mark.parametrize(("state", "verb"), CHANGES)
def test_every_change_of_state_updates_updated_at(account, state, verb):
    before = STATES[state](account)
    time.sleep(0.005)
    after = account.do(verb, before["id"]).json
    assert instant(after["updatedAt"]) > instant(before["updatedAt"])
    assert_lasts(after["updatedAt"], 0)
    assert after["createdAt"] == before["createdAt"]


def test_without_a_lease_id_another_worker_is_refused_by_its_name(account):
    """A worker id is no proof: a worker with the same key that gives no name may do anything that a holder may."""
    mine = claimed(account.do("claim", pending(account)["id"], worker_id="anna"))
    for answer in (account.do("heartbeat", mine["id"], worker_id="ben"), account.complete(mine["id"], worker_id="ben")):
        assert envelope(answer, 409)["error"] == "lease_superseded"
    assert task(account.do("heartbeat", mine["id"]))["status"] == "claimed"
    assert task(account.complete(mine["id"], worker_id="ben", lease_id=mine["leaseId"]))["status"] == "completed"
