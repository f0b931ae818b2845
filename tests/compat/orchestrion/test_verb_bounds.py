"""Every bound of the bodies of the verbs; a refusal does not change the task."""

import pytest

from tests.compat.orchestrion.expect import assert_lasts, bare, claimed, refused, task
from tests.compat.orchestrion.states import held, pending

MONTH = 2_592_000


@pytest.mark.parametrize("label", ["w", "w" * 255, "ü" * 255, "worker/1 @host"], ids=["1", "255", "255 ü", "any"])
def test_a_worker_label_of_up_to_255_characters_is_kept(account, label):
    assert claimed(account.do("claim", pending(account)["id"], worker_id=label))["claimedBy"] == label


BAD_CLAIMS = {
    "label of 256": {"worker_id": "w" * 256},
    "number as a label": {"worker_id": 5},
    "list as a label": {"worker_id": ["w"]},
    "true as a label": {"workerId": True},
    "label with U+0000": {"worker_id": "a\0b"},
}


@pytest.mark.parametrize("fields", BAD_CLAIMS.values(), ids=BAD_CLAIMS)
def test_a_bad_label_claims_nothing(account, fields):
    made = pending(account)
    refused(account.claim(**fields), 400, "invalid_request")
    refused(account.do("claim", made["id"], **fields), 400, "invalid_request")
    assert task(account.read_task(made["id"])) == made


@pytest.mark.parametrize("type", ["", "a.b", "t" * 101, 5, True, ["work"]], ids=str)
def test_a_bad_type_claims_nothing(account, type):
    made = pending(account)
    refused(account.claim(type=type), 400, "invalid_request")
    assert task(account.read_task(made["id"])) == made


# Completing.


@pytest.mark.parametrize(
    "fields",
    [{}, {"result": {"a": 1}}, {"output_id": "out_1"}, {"result": {}, "output_id": "not-an-output"}],
    ids=["nothing", "result", "output", "both"],
)
def test_a_task_is_completed_with_a_result_an_output_both_or_nothing(account, fields):
    done = task(account.complete(held(account)["id"], **fields))
    assert (done["status"], done["result"], done["outputId"]) == (
        "completed",
        fields.get("result"),
        fields.get("output_id"),
    )


BAD_COMPLETIONS = {
    "list as a result": {"result": [1]},
    "text as a result": {"result": "done"},
    "number as a result": {"result": 5},
    "true as a result": {"result": True},
    "result with U+0000": {"result": {"a": "\0"}},
    "number as an output": {"output_id": 5},
    "object as an output": {"outputId": {}},
    "output with U+0000": {"output_id": "a\0b"},
}


@pytest.mark.parametrize("fields", BAD_COMPLETIONS.values(), ids=BAD_COMPLETIONS)
def test_a_bad_completion_leaves_the_task_claimed(account, fields):
    mine = task(account.read_task(held(account)["id"]))
    refused(account.complete(mine["id"], **fields), 400, "invalid_request")
    assert bare(task(account.read_task(mine["id"]))) == bare(mine)


# Failing.


@pytest.mark.parametrize(
    "reason", ["", "r", "r" * 500, "ü" * 500, "🦀" * 500], ids=["0", "1", "500", "500 ü", "500 🦀"]
)
def test_a_reason_of_up_to_500_characters_is_kept(account, reason):
    assert task(account.fail(held(account)["id"], reason=reason))["failureReason"] == reason


@pytest.mark.parametrize("seconds", [0, 1, MONTH - 1, MONTH])
def test_a_delay_of_up_to_thirty_days_sets_when_the_task_is_due(account, seconds):
    failed = task(account.fail(held(account)["id"], retry_after_seconds=seconds))
    assert failed["status"] == "pending"
    assert_lasts(failed["scheduledAt"], seconds)


BAD_FAILURES = {
    "reason of 501": {"reason": "r" * 501},
    "reason of 501 ü": {"reason": "ü" * 501},
    "number as a reason": {"reason": 5},
    "list as a reason": {"reason": ["r"]},
    "reason with U+0000": {"reason": "a\0b"},
    "delay of -1": {"retry_after_seconds": -1},
    "delay of 30 days and a second": {"retry_after_seconds": MONTH + 1},
    "huge delay": {"retry_after_seconds": 10**30},
    "fraction as a delay": {"retry_after_seconds": 1.5},
    "text as a delay": {"retry_after_seconds": "5"},
    "true as a delay": {"retryAfterSeconds": True},
}


@pytest.mark.parametrize("fields", BAD_FAILURES.values(), ids=BAD_FAILURES)
def test_a_bad_failure_leaves_the_task_claimed(account, fields):
    mine = task(account.read_task(held(account)["id"]))
    refused(account.fail(mine["id"], **fields), 400, "invalid_request")
    assert bare(task(account.read_task(mine["id"]))) == bare(mine)


# Listing.


@pytest.mark.parametrize("limit", ["0", "-1", "101", "1000000000000", "x", "", "1.5", "0x10", "%D9%A3"])
def test_a_bad_limit_is_refused(account, limit):
    refused(account.list(f"limit={limit}"), 400, "invalid_request")


@pytest.mark.parametrize("status", ["", "ready", "PENDING", "deadletter", "pending,claimed"])
def test_an_unknown_status_is_refused(account, status):
    refused(account.list(f"status={status}"), 400, "invalid_request")


@pytest.mark.parametrize("cursor", ["nonsense", "%00", "tsk_", "AAAA====", "-1"])
def test_an_unknown_cursor_is_no_server_error(account, cursor):
    pending(account)
    assert account.list(f"cursor={cursor}").status in {200, 400}
