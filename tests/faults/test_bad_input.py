"""Bad input on every store: the right 4xx, never a 5xx, and nothing has changed."""

import pytest

from tests.compat.octostore.expect import acquired
from tests.compat.octostore.server import Server
from tests.compat.octostore.wire import lock_path
from tests.http.job_client import ROOT_KEY, agent, claimed, fresh, job_path, ok
from tests.store_inspection import events_of

DEEP = b"[" * 2000 + b"]" * 2000
DEEP_OBJECT = b'{"a":' * 2000 + b"1" + b"}" * 2000
LONG_NUMBER = b"9" * 5000

# Each of these makes the body invalid JSON, or JSON that cannot be stored.
BODIES = {
    "half an object": b'{"owner": "me"',
    "no json at all": b"owner=me",
    "a null byte": b'{"owner": "me"}\0',
    "an array": b'["me"]',
    "a string": b'"me"',
    "a number": b"5",
    "null": b"null",
    "two objects": b'{"owner": "me"} {"owner": "me"}',
    "a comma too many": b'{"owner": "me",}',
    "single quotes": b"{'owner': 'me'}",
    "a byte order mark": b'\xef\xbb\xbf{"owner": "me"}',
    "utf-16": '{"owner": "me"}'.encode("utf-16"),
    "invalid utf-8": b'{"owner": "\xff\xfe"}',
    "invalid utf-8 in a key": b'{"owner": "me", "\xc3\x28": 1}',
    "a raw control character": b'{"owner": "a\x01b"}',
    "a raw newline": b'{"owner": "a\nb"}',
    "an escaped null": b'{"owner": "a\\u0000b"}',
    "a lone surrogate": b'{"owner": "a\\ud800b"}',
    "a lone low surrogate": b'{"owner": "\\udc00"}',
    "reversed surrogates": b'{"owner": "\\udc00\\ud800"}',
    "nan": b'{"owner": "me", "ttl_seconds": NaN}',
    "infinity": b'{"owner": "me", "ttl_seconds": Infinity}',
    "a huge number": b'{"owner": "me", "ttl_seconds": 1e400}',
    "a long number": b'{"owner": "me", "ttl_seconds": %s}' % LONG_NUMBER,
    "a leading zero": b'{"owner": "me", "ttl_seconds": 010}',
    "wrong types": b'{"owner": {"me": 1}, "ttl_seconds": "x", "metadata": 5, "session_id": []}',
    "a deep array": b'{"owner": %s}' % DEEP,
    "deep metadata": b'{"owner": "me", "metadata": {"a": %s}}' % DEEP,
    "a deep object": DEEP_OBJECT,
    "deep metadata of objects": b'{"owner": "me", "metadata": %s}' % DEEP_OBJECT,
    "a wrong type, then no json": b'{"owner": 5, "metadata": nonsense}',
    "a wrong type, then a lone surrogate": b'{"owner": 5, "metadata": "\\ud800"}',
    "a wrong type, then invalid utf-8": b'{"owner": 5, "metadata": "\xff"}',
    "a wrong type, then depth": b'{"owner": 5, "metadata": {"a": %s}}' % DEEP,
    "a wrong type, then a long number": b'{"owner": 5, "metadata": {"a": %s}}' % LONG_NUMBER,
    "metadata with an escaped null": b'{"owner": "me", "metadata": {"a": "\\u0000"}}',
    "metadata with a null in a key": b'{"owner": "me", "metadata": {"\\u0000": 1}}',
    "metadata with a lone surrogate": b'{"owner": "me", "metadata": {"a": "\\udfff"}}',
    "metadata with a surrogate in a key": b'{"owner": "me", "metadata": {"\\ud800": 1}}',
    "metadata with invalid utf-8": b'{"owner": "me", "metadata": {"a": "\xc3("}}',
    "metadata with nan": b'{"owner": "me", "metadata": {"a": NaN}}',
    "metadata with infinity": b'{"owner": "me", "metadata": {"a": -Infinity}}',
    "metadata with a huge number": b'{"owner": "me", "metadata": {"a": 1e999}}',
    "metadata with a control character": b'{"owner": "me", "metadata": {"a": "\x02"}}',
}

HOLDER_FIELDS = {
    "a long number in a checkpoint": b'"checkpoint": {"a": %s}' % LONG_NUMBER,
    "a deep checkpoint": b'"checkpoint": %s' % DEEP,
    "33 levels": b'"checkpoint": ' + b"[" * 33 + b"]" * 33,
    "nan in progress": b'"progress": NaN',
    "a lone surrogate in a note": b'"note": "\\ud800"',
    "an escaped null in a note": b'"note": "a\\u0000"',
    "invalid utf-8 in a checkpoint": b'"checkpoint": "\xff"',
    "a lone surrogate in a checkpoint": b'"checkpoint": ["\\udead"]',
    "an escaped null in a checkpoint": b'"checkpoint": {"k": ["\\u0000"]}',
    "a huge number in progress": b'"progress": -1e999',
    "a long token": b'"token": %s' % LONG_NUMBER,
    "a huge ttl": b'"ttl_seconds": 1' + b"0" * 300,
    "a checkpoint of garbage": b'"checkpoint": {"a" 1}',
}

LOCK_BODIES = {
    "half an object": b'{"ttl_seconds": 5',
    "no json at all": b"ttl=5",
    "a string": b'"me"',
    "an escaped null": b'{"metadata": "a\\u0000b"}',
    "a lone surrogate": b'{"metadata": "\\ud800"}',
    "invalid utf-8": b'{"metadata": "\xff"}',
    "a raw control character": b'{"metadata": "a\x01b"}',
    "nan": b'{"ttl_seconds": NaN}',
    "a huge number": b'{"ttl_seconds": 1e400}',
    "a long number": b'{"ttl_seconds": %s}' % LONG_NUMBER,
    "a negative number": b'{"ttl_seconds": -1}',
    "wrong types": b'{"ttl_seconds": "x", "metadata": 5}',
    "a deep array": b'{"metadata": %s}' % DEEP,
    "a deep unknown field": b'{"what": %s}' % DEEP,
    "a wrong type, then no json": b'{"ttl_seconds": "x", "metadata": nonsense}',
    "a wrong type, then depth": b'{"ttl_seconds": "x", "metadata": %s}' % DEEP,
    "a wrong type, then a long number": b'{"ttl_seconds": "x", "what": %s}' % LONG_NUMBER,
}

STRANGE = [
    "\u0001\u001b[31m",
    "\u202ereversed",
    "\U000e0041tag",
    "\ufeff",
    "a\u2028b",
    "日本 🦀",
    "'; DROP--",
    "\\u0000",
]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def server(request, tmp_path_factory):
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('input')}/x.db"
    else:
        url = request.getfixturevalue("new_postgres_database")()
    server = Server(url, ROOT_KEY=ROOT_KEY).start()
    yield server
    server.close()


@pytest.fixture
def alice(server):
    return agent(server)


def refused(answer, *statuses):
    assert answer.status in statuses, str(answer)
    assert answer.json["agent_contract"]["next_actions"]


def post(caller, path, raw):
    return caller.send("POST", path, raw, Content_Type="application/json")


@pytest.mark.parametrize("name", BODIES)
def test_a_claim_with_bad_input_changes_nothing(server, alice, name):
    job = fresh()
    before = len(events_of(server.store))
    refused(post(alice, job_path(job, "/claim"), BODIES[name]), 400, 413)
    assert len(events_of(server.store)) == before
    claimed(alice.claim(job, ttl_seconds=3600))


@pytest.mark.parametrize("verb", ["heartbeat", "release"])
@pytest.mark.parametrize("name", HOLDER_FIELDS)
def test_a_holder_with_bad_input_changes_nothing(server, alice, name, verb):
    job = fresh()
    lease = claimed(alice.claim(job, ttl_seconds=3600))
    seen, before = alice.owner_of(job), len(events_of(server.store))
    raw = b'{"lease_id": "%s", %s}' % (lease["lease_id"].encode(), HOLDER_FIELDS[name])
    answer = post(alice, job_path(job, f"/{verb}"), raw)
    if verb == "release" and answer.status == 200:
        assert answer.json["warnings"], "only a field that a release does not know may pass, and not in silence"
        return
    refused(answer, 400, 413)
    assert len(events_of(server.store)) == before
    assert alice.owner_of(job)["expires_at"] == seen["expires_at"]
    ok(alice.heartbeat(job, lease["lease_id"]))


@pytest.mark.parametrize("name", LOCK_BODIES)
def test_an_acquire_with_bad_input_changes_nothing(server, alice, name):
    lock = fresh("lock")
    before = len(events_of(server.store))
    refused(post(alice, lock_path(lock, "/acquire"), LOCK_BODIES[name]), 400, 413, 422)
    assert len(events_of(server.store)) == before
    lease = acquired(alice.acquire(lock, ttl_seconds=3600))
    alice.release(lock, lease["lease_id"])


@pytest.mark.parametrize(
    ("path", "field"), [("/sessions", b"ttl_seconds"), ("/elections/room-12345678/campaign", b"candidate_id")]
)
@pytest.mark.parametrize(
    "name", ["half an object", "a deep array", "a lone surrogate", "invalid utf-8", "an escaped null"]
)
def test_sessions_and_elections_with_bad_input_change_nothing(server, alice, path, field, name):
    before = len(events_of(server.store))
    refused(post(alice, path, BODIES[name].replace(b"owner", field)), 400, 413, 422)
    assert len(events_of(server.store)) == before


@pytest.mark.parametrize("text", STRANGE)
def test_unusual_but_valid_text_is_returned_unchanged(alice, text):
    job = fresh()
    lease = claimed(alice.claim(job, text, metadata={text: text}))
    ok(alice.heartbeat(job, lease["lease_id"], note=text, progress=text))
    seen = alice.owner_of(job)
    assert (seen["owner"], seen["metadata"], seen["note"], seen["progress"]) == (text, {text: text}, text, text)
    ok(alice.release_job(job, lease["lease_id"], checkpoint=[text]))
    assert claimed(alice.claim(job))["previous"]["checkpoint"] == [text]


def test_json_values_are_kept_as_they_were_sent(alice):
    job = fresh()
    lease = claimed(alice.claim(job))
    raw = b'{"lease_id": "%s", "checkpoint": {"n": 1.10, "e": 1E5, "big": 12345678901234567890, "z": -0.0}}'
    ok(post(alice, job_path(job, "/release"), raw % lease["lease_id"].encode()))
    assert b'"checkpoint":{"n":1.10,"e":1E5,"big":12345678901234567890,"z":-0.0}' in alice.get(job_path(job)).raw


def test_bad_input_is_not_logged(server):
    """Bad input must not be logged; a traceback would mean that a request got 500."""
    assert "traceback" not in server.log().lower()
