"""Limits of size count compact UTF-8, however a client spells its JSON."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from holdfast.operations.bounds import CHECKPOINT, JOB_METADATA, PROGRESS, SESSION_CONTEXT, TASK_PAYLOAD
from holdfast.transport.http.bodies.json_text import without_needless_escapes
from tests.compat.octostore.wire import send
from tests.compat.orchestrion.states import held
from tests.http.job_client import fresh, job_path
from tests.proof_size import sized

VALUES = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**53), 2**53) | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=sized(60, 2000), deadline=None)
@given(VALUES)
def test_escaped_and_plain_json_become_the_same_text(value):
    escaped = json.dumps(value, separators=(",", ":")).encode()
    plain = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    assert json.loads(without_needless_escapes(escaped)) == value
    assert len(without_needless_escapes(escaped)) <= len(plain)
    assert without_needless_escapes(escaped) == without_needless_escapes(plain)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (rb'"\u00e9\/\ud83d\ude00"', '"é/😀"'.encode()),
        (rb'"\u0022\u005c\u000a\u0001\""', rb'"\"\\\n\u0001\""'),
        (rb'"\\u00e9"', rb'"\\u00e9"'),
        (rb'{"a":1.0,"b":1e5,"\u0061":12345678901234567890}', b'{"a":1.0,"b":1e5,"a":12345678901234567890}'),
    ],
    ids=["characters", "needed escapes", "an escaped backslash", "numbers"],
)
def test_only_needless_escapes_are_replaced(sent, stored):
    assert without_needless_escapes(sent) == stored


def object_of(size):
    """A JSON object whose compact UTF-8 has this many bytes; as ASCII it is three times as long."""
    count, odd = divmod(size - len('{"k":""}'), 2)
    return {"k": "é" * count + "x" * odd}


def requests(account):
    """(path, bound, field, other fields) of every operation that stores JSON."""
    session = account.post("/v1/sessions", {"name": fresh()}).json
    job = account.post(job_path(fresh(), "/claim"), {"owner": "me"}).json
    task = held(account)
    proof = {"lease_id": task["leaseId"]}
    of_job = {"lease_id": job["lease_id"]}
    return [
        ("/v1/tasks", TASK_PAYLOAD, "payload", {"type": "work"}),
        (job_path(fresh(), "/claim"), JOB_METADATA, "metadata", {"owner": "me"}),
        (job_path(job["job_id"], "/heartbeat"), CHECKPOINT, "checkpoint", of_job),
        (job_path(job["job_id"], "/heartbeat"), PROGRESS, "progress", of_job),
        (job_path(job["job_id"], "/release"), CHECKPOINT, "checkpoint", of_job),
        (
            f"/v1/sessions/{session['session_id']}/context",
            SESSION_CONTEXT,
            "context",
            {"lease_id": session["lease_id"]},
        ),
        (f"/v1/tasks/{task['id']}/heartbeat", CHECKPOINT, "checkpoint", proof),
        (f"/v1/tasks/{task['id']}/heartbeat", PROGRESS, "progress", proof),
        (f"/v1/tasks/{task['id']}/complete", TASK_PAYLOAD, "result", proof),
    ]


@pytest.mark.parametrize("is_ascii", [True, False], ids=["escaped", "plain"])
def test_every_limit_of_json_counts_compact_utf8(account, is_ascii):
    for path, bound, field, others in requests(account):
        for size, is_accepted in ((bound.size + 1, False), (bound.size, True)):
            body = json.dumps(others | {field: object_of(size)}, ensure_ascii=is_ascii, indent=1).encode()
            answer = send(account.port, "POST", path, body, account.headers | {"Content-Type": "application/json"})
            assert (answer.status < 300) is is_accepted, (path, field, size, str(answer)[:300])
