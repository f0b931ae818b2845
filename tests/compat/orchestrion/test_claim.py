"""Claims: the fields of the answer, the order of the queue, and which tasks are not claimed."""

import time

import pytest

from tests.compat.orchestrion.account import TYPE
from tests.compat.orchestrion.expect import (
    ABSENT,
    assert_lasts,
    bare,
    claimed,
    in_seconds,
    no_tasks,
    not_yet_claimable,
    refused,
    seconds_left,
    task,
)
from tests.compat.orchestrion.states import cancelled, completed, dead, held, pending, retrying, scheduled


def test_a_claim_counts_the_attempt_and_starts_the_lease(account):
    made = pending(account, leaseDurationSeconds=120)
    mine = claimed(account.claim(worker_id="anna"))
    assert mine["id"] == made["id"]
    assert (mine["attemptCount"], mine["claimedBy"]) == (1, "anna")
    assert_lasts(mine["leaseExpiresAt"], 120)
    unchanged = bare(made).keys() - {"status", "attemptCount", "claimedBy", "leaseExpiresAt", "updatedAt"}
    assert {key: mine[key] for key in unchanged} == {key: made[key] for key in unchanged}


def test_a_claim_by_id_counts_the_attempt_and_starts_the_lease(account):
    made = pending(account, leaseDurationSeconds=120)
    mine = claimed(account.do("claim", made["id"], worker_id="anna"))
    assert (mine["id"], mine["attemptCount"], mine["claimedBy"]) == (made["id"], 1, "anna")
    assert_lasts(mine["leaseExpiresAt"], 120)


def test_reading_a_claimed_task_returns_the_fields_of_the_claim(account):
    pending(account)
    mine = claimed(account.claim(worker_id="anna"))
    observed = bare(task(account.read_task(mine["id"])))
    assert observed == {key: mine["task"][key] for key in observed}


def test_worker_id_is_optional(account):
    pending(account)
    assert claimed(account.claim())["claimedBy"] is None
    assert claimed(account.do("claim", pending(account)["id"]))["claimedBy"] is None


def test_an_empty_object_means_no_body(account):
    assert claimed(account.post(f"/v1/tasks/{pending(account)['id']}/claim", {}))["status"] == "claimed"


def test_a_claim_from_an_empty_queue_returns_no_task(account):
    no_tasks(account.claim())


@pytest.mark.parametrize("state", [scheduled, held, completed, dead, cancelled])
def test_only_pending_tasks_that_are_due_are_claimed(account, state):
    other = task(account.read_task(state(account)["id"]))
    no_tasks(account.claim())
    assert bare(task(account.read_task(other["id"]))) == bare(other)


def test_a_task_that_failed_without_a_delay_is_claimable_at_once(account):
    failed = retrying(account)
    assert failed["scheduledAt"] is None
    assert claimed(account.claim())["id"] == failed["id"]


def test_a_claim_returns_only_tasks_of_its_type(account):
    apple, pear = pending(account, type="apple"), pending(account, type="pear")
    no_tasks(account.claim(type="plum"))
    no_tasks(account.claim(type="appl"))
    no_tasks(account.claim(type="Apple"))
    assert claimed(account.claim(type="pear"))["id"] == pear["id"]
    assert claimed(account.claim(type="apple"))["id"] == apple["id"]


def test_a_claim_without_a_type_returns_any_task(account):
    first, second = pending(account, type="apple"), pending(account, type="pear", priority=1)
    assert [claimed(account.post("/v1/tasks/claim", {}))["id"] for _ in range(2)] == [second["id"], first["id"]]
    no_tasks(account.post("/v1/tasks/claim"))


def claims(account, count):
    """The ids of everything there is to claim, in the order it is handed out."""
    order = [claimed(account.claim())["id"] for _ in range(count)]
    no_tasks(account.claim())
    return order


def test_a_larger_priority_comes_first(account):
    made = {priority: pending(account, priority=priority)["id"] for priority in (5, 0, 100, 50, 99, 1)}
    assert claims(account, 6) == [made[priority] for priority in (100, 99, 50, 5, 1, 0)]


def test_of_equal_priority_the_older_task_comes_first(account):
    made = [pending(account)["id"] for _ in range(8)]
    assert claims(account, 8) == made


def test_unscheduled_tasks_come_before_scheduled_ones_which_come_by_time(account):
    later = pending(account, scheduledAt=in_seconds(0.6))
    sooner = pending(account, scheduledAt=in_seconds(0.4))
    urgent = pending(account, scheduledAt=in_seconds(0.5), priority=1)
    plain = [pending(account)["id"] for _ in range(2)]
    time.sleep(max(0.0, seconds_left(later["scheduledAt"]) + 0.05))
    assert claims(account, 5) == [urgent["id"], *plain, sooner["id"], later["id"]]


def test_a_retried_task_comes_after_new_ones_of_its_priority(account):
    failed = task(account.fail(held(account)["id"], retry_after_seconds=0))
    fresh = pending(account)
    assert claims(account, 2) == [fresh["id"], failed["id"]]


def test_a_scheduled_task_waits_for_its_time(account):
    made = pending(account, scheduledAt=in_seconds(0.7))
    no_tasks(account.claim())
    not_yet_claimable(account.do("claim", made["id"]), made["id"], made["scheduledAt"])
    assert task(account.read_task(made["id"])) == made
    time.sleep(max(0.0, seconds_left(made["scheduledAt"]) + 0.02))
    mine = claimed(account.claim())
    assert (mine["id"], mine["attemptCount"]) == (made["id"], 1)


def test_a_delay_hides_a_failed_task_until_it_is_due(account):
    failed = task(account.fail(held(account)["id"], retry_after_seconds=1))
    no_tasks(account.claim())
    not_yet_claimable(account.do("claim", failed["id"]), failed["id"], failed["scheduledAt"])
    time.sleep(max(0.0, seconds_left(failed["scheduledAt"]) + 0.02))
    assert claimed(account.do("claim", failed["id"]))["attemptCount"] == 2


@pytest.mark.parametrize("seconds", [90, 3600, 86_400])
def test_a_claim_before_the_due_time_has_retry_after(account, seconds):
    made = pending(account, scheduledAt=in_seconds(seconds))
    not_yet_claimable(account.do("claim", made["id"]), made["id"], made["scheduledAt"])
    failed = task(account.fail(held(account)["id"], retry_after_seconds=seconds))
    not_yet_claimable(account.do("claim", failed["id"]), failed["id"], failed["scheduledAt"])


@pytest.mark.parametrize("task_id", [ABSENT, "nonsense", "tsk_", "tsk_%00", "tsk_%C3%A9", "5", "claim%20"])
def test_an_unknown_id_is_not_found(account, task_id):
    refused(account.do("claim", task_id), 404, "task_not_found")
    refused(account.read_task(task_id), 404, "task_not_found")


def test_an_id_is_compared_exactly(account):
    made = pending(account)
    for near in (made["id"].lower(), made["id"][:-1], made["id"] + "0", made["id"].removeprefix("tsk_")):
        refused(account.read_task(near), 404, "task_not_found")
    assert claimed(account.claim(type=TYPE))["id"] == made["id"]
