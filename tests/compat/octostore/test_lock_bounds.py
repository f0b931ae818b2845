"""Bounds of lock names, TTL, metadata and delay, and the order of the checks."""

import pytest

from tests.compat.octostore.expect import (
    ABSENT_LEASE,
    acquired,
    delayed,
    malformed,
    no_such_route,
    no_such_session,
    refused,
    released,
    success,
)
from tests.compat.octostore.wire import lock_path

ELECTION_LOCK = "__election/some-room"


@pytest.mark.parametrize(
    "name",
    [
        "équipe/分队-1",
        "A-b_c.D/9",
        "a/./b",
        "...",
        "-",
        "b" * 64,
        "é" * 32,
        "/".join(["c" * 64, "c" * 64, "c" * 64, "c" * 61]),
        "½-Ⅷ-①",
        "__election",
        "__election.x",
        "__elections/x",
    ],
    ids=[
        "unicode",
        "every-ascii-kind",
        "single-dot-part",
        "three-dots",
        "hyphen",
        "64-byte-part",
        "64-byte-unicode-part",
        "256-bytes",
        "numeric-property",
        "reserved-word-alone",
        "reserved-word-with-dot",
        "reserved-word-longer",
    ],
)
def test_a_valid_name_is_accepted(alice, name):
    lease = acquired(alice.acquire(name))
    assert success(alice.read_lock(name))["name"] == name
    released(alice.release(name, lease["lease_id"]))


@pytest.mark.parametrize("name", ["\u0915\u093f", "Ⓐ"], ids=["vowel-sign", "circled-letter"])
def test_alphabetic_is_unicodes_property_not_a_general_category(alice, name):
    assert success(alice.read_lock(name))["status"] == "free"


BAD_NAMES = {
    "257-bytes": "/".join(["c" * 64, "c" * 64, "c" * 64, "c" * 62]),
    "65-byte-part": "b" * 65,
    "66-byte-unicode-part": "é" * 33,
    "leading-slash": "/a",
    "trailing-slash": "a/",
    "only-a-slash": "/",
    "double-slash": "a//b",
    "dot-dot": "..",
    "dot-dot-inside": "a/../b",
    "dot-dot-last": "a/..",
    "space": "a b",
    "exclamation": "a!",
    "at": "a@b",
    "colon": "a:b",
    "percent": "a%b",
    "tilde": "~a",
    "backslash": "a\\b",
    "star": "a*",
    "newline": "a\n",
    "nul": "a\0b",
    "emoji": "😀",
    "combining-accent": "e\u0301",
    "zero-width-joiner": "a\u200db",
}


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
def test_an_invalid_name_is_refused(alice, name):
    refused(alice.read_lock(name), 400, "invalid_lock_name")


def test_a_plus_in_a_name_is_refused(alice):
    refused(alice.get("/locks/a+b"), 400, "invalid_lock_name")


ASKS = {
    "acquire": lambda caller, path: caller.post(f"{path}/acquire", {}),
    "renew": lambda caller, path: caller.post(f"{path}/renew", {"lease_id": ABSENT_LEASE}),
    "release": lambda caller, path: caller.post(f"{path}/release", {"lease_id": ABSENT_LEASE}),
    "acl": lambda caller, path: caller.put(f"{path}/acl", {"acl": {"acquire": [f"user:{caller.name}"]}}),
    "read": lambda caller, path: caller.get(path),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_every_call_checks_the_name(alice, ask):
    refused(ask(alice, "/locks/a%20b"), 400, "invalid_lock_name")


@pytest.mark.parametrize("verb", ["acquire", "renew", "release", "acl"])
def test_an_empty_name_inside_a_path_reaches_the_grammar(alice, verb):
    refused(ASKS[verb](alice, "/locks/"), 400, "invalid_lock_name")


@pytest.mark.parametrize("verb", ["acquire", "renew", "release", "read"])
def test_names_of_elections_are_reserved(alice, verb):
    refused(ASKS[verb](alice, lock_path(ELECTION_LOCK)), 403, "forbidden")


@pytest.mark.parametrize("verb", ["acquire", "renew", "release", "read"])
def test_names_of_elections_are_reserved_for_the_admin_too(admin, verb):
    refused(ASKS[verb](admin, lock_path(ELECTION_LOCK)), 403, "forbidden")


def test_an_encoded_slash_in_either_case_is_one_name(alice, lock):
    acquired(alice.post(f"/locks/{lock}%2fpart/acquire", {}))
    assert success(alice.get(f"/locks/{lock}%2Fpart"))["status"] == "held"


@pytest.mark.parametrize("path", ["/locks/a/b/acquire", "/locks/a/b/release", "/locks/a/b/renew"])
def test_an_unencoded_slash_in_a_name_is_not_found(alice, path):
    no_such_route(alice.post(path, {}))


def test_an_unencoded_slash_in_a_name_is_not_found_by_get(alice):
    no_such_route(alice.get("/locks/a/b"))


# Bounds.


@pytest.mark.parametrize("ttl", [0, 3601, 4_294_967_295])
def test_a_ttl_out_of_bounds_is_refused(alice, lock, ttl):
    refused(alice.acquire(lock, ttl_seconds=ttl), 400, "invalid_ttl")
    assert success(alice.read_lock(lock))["status"] == "free"


@pytest.mark.parametrize("ttl", [0, 3601])
def test_a_renewal_out_of_bounds_is_refused_and_changes_nothing(alice, lock, ttl):
    lease = acquired(alice.acquire(lock))
    refused(alice.renew(lock, lease["lease_id"], ttl_seconds=ttl), 400, "invalid_ttl")
    assert success(alice.read_lock(lock))["expires_at"] == lease["expires_at"]


@pytest.mark.parametrize("ttl", [1, 3600])
def test_a_renewal_at_its_bounds_is_accepted(alice, lock, ttl):
    success(alice.renew(lock, acquired(alice.acquire(lock))["lease_id"], ttl_seconds=ttl))


@pytest.mark.parametrize(
    "metadata",
    ["", "x", "m" * 1024, "😀" * 1024, 'quotes " and \\ and \n', "é分"],
    ids=["empty", "short", "1024", "1024-astral", "escapes", "unicode"],
)
def test_metadata_comes_back_as_it_was_sent(alice, lock, metadata):
    assert acquired(alice.acquire(lock, metadata=metadata))["metadata"] == metadata
    assert success(alice.read_lock(lock))["metadata"] == metadata


@pytest.mark.parametrize("character", ["m", "😀"], ids=["ascii", "astral"])
def test_metadata_over_1024_code_points_is_refused(alice, lock, character):
    refused(alice.acquire(lock, metadata=character * 1025), 400, "invalid_input")


def test_metadata_with_a_zero_character_is_refused(alice, lock):
    assert alice.acquire(lock, metadata="a\0b").status in {400, 422}
    assert success(alice.read_lock(lock))["status"] == "free"


def test_a_lock_delay_over_thirty_seconds_is_refused(alice, lock):
    assert "between 0 and 30" in refused(alice.acquire(lock, lock_delay_seconds=31), 400, "invalid_input")["details"]


@pytest.mark.parametrize("delay", [0, 1, 30])
def test_a_lock_delay_at_its_bounds_is_accepted(alice, lock, delay):
    acquired(alice.acquire(lock, lock_delay_seconds=delay))


def test_an_ephemeral_lock_needs_a_session(alice, lock):
    refused(alice.acquire(lock, ephemeral=True), 400, "invalid_input")


def test_ephemeral_false_needs_no_session(alice, lock):
    acquired(alice.acquire(lock, ephemeral=False))


# Which refusal comes first.

LONG = "m" * 1025


def test_a_bad_body_is_reported_before_a_missing_credential(anyone, lock):
    malformed(anyone.acquire(lock, ttl_seconds="soon"), 422)


def test_a_missing_credential_is_reported_before_a_bad_name(anyone):
    refused(anyone.acquire("a b", ttl_seconds=0), 401, "authentication_required")


def test_a_bad_name_is_reported_before_a_bad_ttl(alice):
    refused(alice.acquire("a b", ttl_seconds=0), 400, "invalid_lock_name")


def test_a_reserved_name_is_reported_before_a_bad_ttl(alice):
    refused(alice.acquire(ELECTION_LOCK, ttl_seconds=0), 403, "forbidden")


def test_a_bad_ttl_is_reported_before_long_metadata(alice, lock):
    refused(alice.acquire(lock, ttl_seconds=0, metadata=LONG), 400, "invalid_ttl")


def test_long_metadata_is_reported_before_a_bad_delay(alice, lock):
    body = refused(alice.acquire(lock, metadata=LONG, lock_delay_seconds=31), 400, "invalid_input")
    assert "between 0 and 30" not in body["details"]


def test_a_bad_delay_is_reported_before_a_missing_session(alice, lock):
    body = refused(alice.acquire(lock, lock_delay_seconds=31, ephemeral=True), 400, "invalid_input")
    assert "between 0 and 30" in body["details"]


def test_a_bad_acl_is_reported_before_a_conflicting_one(alice, lock):
    acquired(alice.acquire(lock, acl={"acquire": [f"user:{alice.name}"]}))
    refused(alice.acquire(lock, acl={"acquire": []}), 400, "invalid_input")


def test_a_conflicting_acl_is_reported_before_exclusion(alice, bob, lock):
    acquired(alice.acquire(lock, acl={"acquire": [f"user:{alice.name}"]}))
    refused(bob.acquire(lock, acl={"acquire": [f"user:{bob.name}"]}), 409, "conflict")


@pytest.fixture
def delayed_name(alice, lock):
    """A name in its release delay, reserved for alice."""
    lease = acquired(alice.acquire(lock, lock_delay_seconds=30, acl={"acquire": [f"user:{alice.name}"]}))
    released(alice.release(lock, lease["lease_id"]))
    return lock


def test_exclusion_is_reported_before_a_delay(bob, delayed_name):
    refused(bob.acquire(delayed_name), 403, "forbidden")


def test_a_lock_delay_is_reported_before_an_unknown_session(alice, delayed_name):
    delayed(alice.acquire(delayed_name, session_id=ABSENT_LEASE))


def test_a_missing_session_is_reported_before_contention(alice, bob, lock):
    acquired(bob.acquire(lock))
    no_such_session(alice.acquire(lock, session_id=ABSENT_LEASE))


def test_a_bad_name_is_reported_before_a_bad_ttl_when_renewing(alice):
    refused(alice.renew("a b", ABSENT_LEASE, ttl_seconds=0), 400, "invalid_lock_name")


def test_a_reserved_name_is_reported_before_a_bad_ttl_when_renewing(alice):
    refused(alice.renew(ELECTION_LOCK, ABSENT_LEASE, ttl_seconds=0), 403, "forbidden")


def test_a_bad_ttl_is_reported_before_a_missing_lease_when_renewing(alice, lock):
    refused(alice.renew(lock, ABSENT_LEASE, ttl_seconds=0), 400, "invalid_ttl")


def test_a_bad_ttl_is_reported_before_a_foreign_session_when_renewing(alice, bob, lock, session):
    lease = acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    refused(bob.renew(lock, lease["lease_id"], ttl_seconds=0), 400, "invalid_ttl")
