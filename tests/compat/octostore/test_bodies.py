"""Request bodies: content types, size limit, JSON and field types, and ignored fields."""

import json
import uuid

import pytest

from tests.compat.octostore.expect import ABSENT_LEASE, acquired, assert_lasts, malformed, refused, released, success
from tests.compat.octostore.wire import lock_path

JSON = "application/json"
TWO_MEBIBYTES = 2_097_152

WRITES = {
    "acquire": "POST /locks/name/acquire",
    "renew": "POST /locks/name/renew",
    "release": "POST /locks/name/release",
    "acl": "PUT /locks/name/acl",
    "session": "POST /sessions",
    "campaign": "POST /elections/some-room/campaign",
    "lead on": "POST /elections/some-room/renew",
    "resign": "POST /elections/some-room/resign",
}


@pytest.fixture(params=WRITES.values(), ids=WRITES)
def write(request, anyone):
    """A call that reads a body, without a credential: the body is checked first."""
    return lambda body, content_type=JSON: anyone.send(*request.param.split(), body, Content_Type=content_type)


# Content types.


@pytest.mark.parametrize("content_type", ["text/plain", "text/json", "application/jsonx", "json", "text/x+json", ""])
def test_a_body_of_another_type_is_refused(write, content_type):
    malformed(write(b"{}", content_type), 415)


def test_a_body_without_a_type_is_refused(anyone, alice):
    for caller in (anyone, alice):
        malformed(caller.send("POST", "/locks/name/acquire", b"{}"), 415)
        malformed(caller.send("POST", "/locks/name/acquire"), 415)


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=utf-8", "application/vnd.some+json", "Application/JSON", "application/problem+json"],
)
def test_every_kind_of_application_json_is_read(alice, lock, content_type):
    acquired(alice.send("POST", lock_path(lock, "/acquire"), b"{}", Content_Type=content_type))


# Size.


def test_two_mebibytes_are_read(alice, lock):
    body = b"{" + b" " * (TWO_MEBIBYTES - 2) + b"}"
    acquired(alice.send("POST", lock_path(lock, "/acquire"), body, Content_Type=JSON))


def test_one_byte_more_is_too_large(anyone):
    body = b"{" + b" " * (TWO_MEBIBYTES - 1) + b"}"
    malformed(anyone.send("POST", "/locks/name/acquire", body, Content_Type=JSON), 413)


def test_a_large_body_of_another_type_is_refused_for_its_type(anyone):
    body = b" " * (TWO_MEBIBYTES + 1)
    malformed(anyone.send("POST", "/locks/name/acquire", body, Content_Type="text/plain"), 415)


# Bodies that are not JSON.

NO_JSON = {
    "empty": b"",
    "blank": b"  \n",
    "word": b"nonsense",
    "cut": b'{"ttl_seconds": 60',
    "cut string": b'{"metadata": "x',
    "trailing comma": b'{"ttl_seconds": 60,}',
    "single quotes": b"{'ttl_seconds': 60}",
    "unquoted key": b"{ttl_seconds: 60}",
    "leading zero": b'{"x": 060}',
    "not a number": b'{"x": NaN}',
    "comment": b"{/* none */}",
    "byte order mark": b"\xef\xbb\xbf{}",
    "utf-16": "{}".encode("utf-16-le"),
    "bare line break in a string": b'{"x": "a\nb"}',
    "bad escape": b'{"x": "\\q"}',
    "control character": b'{"x": "\x01"}',
}


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON)
def test_a_body_that_is_not_json_is_refused_before_authentication(anyone, alice, body):
    for caller in (anyone, alice):
        malformed(caller.send("POST", "/locks/name/acquire", body, Content_Type=JSON), 400)


@pytest.mark.parametrize(
    "text",
    [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\\ud800", b"\\udc00", b"\\ud800x", b"\\ud800\\u0041"],
    ids=["byte", "cut", "encoded surrogate", "high", "low", "high and letter", "high and escaped letter"],
)
def test_invalid_utf_8_is_refused(alice, lock, text):
    body = b'{"metadata": "' + text + b'"}'
    malformed(alice.send("POST", lock_path(lock, "/acquire"), body, Content_Type=JSON), 400)
    assert success(alice.read_lock(lock))["status"] == "free"


def test_every_write_refuses_a_body_that_is_not_json(write):
    malformed(write(b"{nonsense"), 400)
    malformed(write(b""), 400)


def test_a_pair_of_escaped_surrogates_is_one_character(alice, lock):
    body = b'{"metadata": "\\ud83d\\ude00"}'
    answer = alice.send("POST", lock_path(lock, "/acquire"), body, Content_Type=JSON)
    assert acquired(answer)["metadata"] == "😀"


# JSON of the wrong type.


@pytest.mark.parametrize("body", [b"null", b"true", b"7", b'"text"'])
def test_a_body_that_is_not_an_object_is_refused(write, body):
    malformed(write(body), 422)


NO_NUMBERS = ['"60"', "-1", "1.5", "60.0", "6e1", "true", "[60]", "{}", "4294967296", "99999999999999999999999999"]


@pytest.mark.parametrize("number", NO_NUMBERS)
def test_a_number_must_be_a_32_bit_integer(alice, lock, election, number):
    for path, body in (
        (lock_path(lock, "/acquire"), '{"ttl_seconds": %s}'),
        (lock_path(lock, "/acquire"), '{"lock_delay_seconds": %s}'),
        (lock_path(lock, "/renew"), f'{{"lease_id": "{ABSENT_LEASE}", "ttl_seconds": %s}}'),
        ("/sessions", '{"ttl_seconds": %s}'),
        (f"/elections/{election}/campaign", '{"candidate_id": "c", "ttl_seconds": %s}'),
    ):
        malformed(alice.send("POST", path, (body % number).encode(), Content_Type=JSON), 422)


WRONG_FIELDS = {
    "number for metadata": {"metadata": 1},
    "object for metadata": {"metadata": {"a": 1}},
    "list for metadata": {"metadata": ["a"]},
    "text for ephemeral": {"ephemeral": "true"},
    "number for ephemeral": {"ephemeral": 1},
    "text for session": {"session_id": "nonsense"},
    "empty session": {"session_id": ""},
    "number for session": {"session_id": 7},
}


@pytest.mark.parametrize("fields", WRONG_FIELDS.values(), ids=WRONG_FIELDS)
def test_a_field_of_another_type_is_refused(alice, lock, fields):
    malformed(alice.acquire(lock, **fields), 422)


@pytest.mark.parametrize("verb", ["renew", "release"])
@pytest.mark.parametrize(
    "lease",
    [{}, {"lease_id": None}, {"lease_id": "nonsense"}, {"lease_id": 5}, {"lease_id": ABSENT_LEASE[:-1]}],
    ids=["absent", "null", "nonsense", "number", "short"],
)
def test_a_lease_id_must_be_a_uuid(alice, anyone, lock, verb, lease):
    for caller in (alice, anyone):
        malformed(caller.post(lock_path(lock, f"/{verb}"), lease), 422)


@pytest.mark.parametrize(
    "body",
    [
        b'{"ttl_seconds": 60, "ttl_seconds": 60}',
        b'{"metadata": null, "ttl_seconds": 60, "metadata": "x"}',
        b'{"acl": {"acquire": ["user:a"], "acquire": ["user:a"]}}',
        b'{"ttl_seconds": 60, "ttl_\\u0073econds": 60}',
    ],
    ids=["twice", "apart", "nested", "spelled otherwise"],
)
def test_a_repeated_known_field_is_refused(alice, lock, body):
    malformed(alice.send("POST", lock_path(lock, "/acquire"), body, Content_Type=JSON), 422)


def test_a_repeated_known_field_is_refused_by_every_write(alice, anyone, lock, election):
    twice = f'{{"lease_id": "{ABSENT_LEASE}", "lease_id": "{ABSENT_LEASE}"}}'.encode()
    malformed(alice.send("POST", lock_path(lock, "/release"), twice, Content_Type=JSON), 422)
    twice = b'{"ttl_seconds": 20, "ttl_seconds": 20}'
    malformed(alice.send("POST", "/sessions", twice, Content_Type=JSON), 422)
    twice = b'{"candidate_id": "c", "candidate_id": "c"}'
    malformed(anyone.send("POST", f"/elections/{election}/campaign", twice, Content_Type=JSON), 422)


# Ignored parts of a body.


def test_a_repeated_unknown_field_is_ignored(alice, lock):
    acquired(alice.send("POST", lock_path(lock, "/acquire"), b'{"x": 1, "x": [2]}', Content_Type=JSON))


@pytest.mark.parametrize("rest", [b"garbage", b"}", b" , ]", b'{"ttl_seconds": 0}', b"\n\n{"])
def test_bytes_after_the_first_value_are_ignored(alice, lock, rest):
    body = b'{"ttl_seconds": 90}' + rest
    answer = alice.send("POST", lock_path(lock, "/acquire"), body, Content_Type=JSON)
    assert_lasts(acquired(answer)["expires_at"], 90)


def test_white_space_around_the_value_is_ignored(alice, lock):
    acquired(alice.send("POST", lock_path(lock, "/acquire"), b" \r\n\t{ } \n", Content_Type=JSON))


# A list may stand for an object: one element for each field, in order.


def test_an_array_is_accepted_for_the_body_of_acquire(alice, lock, session):
    acl = [[f"user:{alice.name}"]]
    lease = acquired(alice.post(lock_path(lock, "/acquire"), [90, "note", session, True, 0, acl]))
    assert_lasts(lease["expires_at"], 90)
    assert lease["metadata"] == "note"
    observed = success(alice.read_lock(lock))
    assert observed["acl"] == {"acquire": [f"user:{alice.name}"]}
    assert success(alice.get(f"/sessions/{session}"))["lock_count"] == 1


def test_an_array_is_accepted_for_the_bodies_of_renew_and_release(alice, lock):
    lease_id = acquired(alice.acquire(lock))["lease_id"]
    assert_lasts(success(alice.post(lock_path(lock, "/renew"), [lease_id, 120]))["expires_at"], 120)
    released(alice.post(lock_path(lock, "/release"), [lease_id]))


def test_an_array_is_accepted_for_an_acl_on_either_level(alice, lock):
    acquired(alice.acquire(lock))
    entries = [f"user:{alice.name}"]
    for body in ([{"acquire": entries}], {"acl": [entries]}, [[entries]]):
        assert success(alice.put(lock_path(lock, "/acl"), body))["acl"] == {"acquire": entries}


def test_an_array_is_accepted_for_the_body_of_a_session(alice):
    assert_lasts(success(alice.post("/sessions", [20]), 201)["expires_at"], 20)


def test_an_array_is_accepted_for_the_bodies_of_elections(anyone, election):
    leadership = success(anyone.post(f"/elections/{election}/campaign", ["c", 20, "note"]))
    assert leadership["leader"]["metadata"] == "note"
    assert leadership["renew_after_ms"] == 10_000
    token = leadership["leader_token"]
    assert success(anyone.post(f"/elections/{election}/renew", [token, 40]))["renew_after_ms"] == 20_000
    assert success(anyone.post(f"/elections/{election}/resign", [token, None]))["status"] == "vacant"


@pytest.mark.parametrize("body", [[], [7], ["nonsense"], [None]], ids=json.dumps)
def test_an_array_without_a_required_field_is_refused(alice, lock, body):
    malformed(alice.post(lock_path(lock, "/release"), body), 422)


# UUIDs in bodies.

SPELLINGS = {
    "hyphenated": str,
    "upper-case": lambda value: str(value).upper(),
    "bare-hex": lambda value: value.hex,
    "braced": lambda value: f"{{{value}}}",
    "urn": lambda value: value.urn,
}


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_a_lease_id_may_be_spelled_in_every_way_and_comes_back_in_one(alice, lock, spell):
    lease_id = acquired(alice.acquire(lock))["lease_id"]
    spelled = spell(uuid.UUID(lease_id))
    assert success(alice.renew(lock, spelled))["lease_id"] == lease_id
    released(alice.release(lock, spelled))


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_a_session_id_may_be_spelled_in_every_way(alice, lock, session, spell):
    acquired(alice.acquire(lock, session_id=spell(uuid.UUID(session)), ephemeral=True))
    assert success(alice.get(f"/sessions/{session}"))["lock_count"] == 1


# The body is parsed before the credential is checked, and the credential before the values.


def test_every_write_checks_the_credential_after_the_body(anyone):
    for path, body in (
        ("/locks/a%20b/acquire", {"ttl_seconds": 0}),
        ("/locks/a%20b/renew", {"lease_id": ABSENT_LEASE, "ttl_seconds": 0}),
        ("/locks/a%20b/release", {"lease_id": ABSENT_LEASE}),
        ("/locks//acquire", {}),
        ("/sessions", {}),
    ):
        refused(anyone.post(path, body), 401, "authentication_required")
