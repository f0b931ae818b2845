"""Answers and refusals, with every kind of client."""

import pytest

from holdfast.client import errors


def test_an_operation_answers_its_document(client, name):
    claimed = client.call("claim_job", job_id=f"{name}/a", owner="me", metadata={"n": 1})
    assert (claimed["status"], claimed["metadata"]) == ("claimed", {"n": 1})
    listed = client.call("list_claimed_jobs", prefix=name)
    assert [job["job_id"] for job in listed["jobs"]] == [f"{name}/a"]
    assert client.call("release_job", job_id=f"{name}/a", lease_id=claimed["lease_id"])["status"] == "released"


def test_text_and_empty_answers_become_documents(client, name):
    assert client.call("llms_txt")["text"].startswith("# ")
    lock = client.call("acquire_lock", name=name, ttl_seconds=30)
    assert client.call("release_lock", name=name, lease_id=lock["lease_id"]) == {}


NOBODYS = "00000000-0000-0000-0000-000000000001"


REFUSALS = [
    ("heartbeat_job", {"job_id": "nobody", "lease_id": NOBODYS}, (errors.LeaseLost, "lease_lost", 409)),
    ("release_lock", {"name": "x", "lease_id": NOBODYS}, (errors.LeaseLost, "lease_not_current", 404)),
    ("check_task_status", {"id": "tsk_x"}, (errors.NotFound, "task_not_found", 404)),
    ("claim_job", {"job_id": "x", "owner": ""}, (errors.Invalid, "invalid_request", 400)),
    ("force_release_job", {"job_id": "free", "reason": "x"}, (errors.Conflict, "not_held", 409)),
]


@pytest.mark.parametrize(("operation", "arguments", "expected"), REFUSALS, ids=lambda value: str(value)[:20])
def test_each_refusal_raises_the_class_of_its_code(client, operation, arguments, expected):
    with pytest.raises(errors.HoldfastError) as caught:
        client.call(operation, **arguments)
    error = caught.value
    assert (type(error), error.code, error.status) == expected
    assert error.request_id
    assert error.hint in str(error)
    assert error.hint
    if operation != "release_lock":  # OctoStore's refusals advise nothing
        assert error.next_actions[0]["recommended"]


def test_an_unknown_operation_is_a_value_error(client):
    with pytest.raises(ValueError, match="fly_away"):
        client.call("fly_away")
    with pytest.raises(TypeError, match="job_id"):
        client.call("get_job_owner")
