"""Keys: their checksum, scopes, names, expiry, delegation and rotation."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import principal as principals
from holdfast.core.errors import Forbidden
from holdfast.core.principal import ALL_SCOPES, ISSUED, LOCAL, ROTATED, SCOPES, STATIC, WORK_SCOPES, Principal
from holdfast.operations.table import OPERATIONS
from tests.support import ALICE, START

LETTERS = string.digits + string.ascii_letters
random_bytes = st.binary(min_size=24, max_size=24)


@given(random_bytes, st.sampled_from(["live", "test"]))
def test_a_formatted_key_is_well_formed_and_has_the_documented_form(random, kind):
    key = principals.format_key(random, kind)
    assert re.fullmatch(rf"hf_{kind}_[0-9A-Za-z]{{32}}_[0-9A-Za-z]{{6}}", key)
    assert principals.is_well_formed(key)


@given(random_bytes, st.integers(0, 37), st.sampled_from(LETTERS))
def test_any_single_wrong_character_breaks_the_checksum(random, place, letter):
    key = principals.format_key(random)
    at = len("hf_live_") + place + (place >= 32)
    slip = key[:at] + letter + key[at + 1 :]
    assert principals.is_well_formed(slip) is (slip == key)


@given(random_bytes)
def test_a_live_key_is_not_valid_as_a_test_key(random):
    assert not principals.is_well_formed(principals.format_key(random).replace("live", "test"))


@given(random_bytes, random_bytes)
def test_different_random_bytes_make_different_keys(one, other):
    low = 190 // 8  # the top bits beyond 190 are cut
    assert (principals.format_key(one) == principals.format_key(other)) <= (one[-low:] == other[-low:])


@pytest.mark.parametrize("key", ["hf_live_", "hf_live_abc", "hf_test_" + "0" * 32, "hf_live_" + "0" * 32 + "_000000"])
def test_a_part_of_a_key_is_not_well_formed(key):
    assert not principals.is_well_formed(key)


@pytest.mark.parametrize("token", ["a static token of another form", "", "hf_dead_x_y"])
def test_static_tokens_have_no_checksum(token):
    assert principals.is_well_formed(token)


@pytest.mark.parametrize(
    ("scopes", "scope", "may"),
    [
        (ALL_SCOPES, "admin", True),
        (WORK_SCOPES, "jobs", True),
        (WORK_SCOPES, "admin", False),
        (WORK_SCOPES, "tasks", True),
        (WORK_SCOPES, "job", False),
        ("jobs", "tasks", False),
        ("admin", "tasks", True),
        ("administrator", "tasks", False),
    ],
)
def test_a_key_has_its_scopes_and_an_admin_key_has_all(scopes, scope, may):
    assert principals.Principal("default", "p", scopes=scopes).may(scope) is may


def test_a_revoked_principal_keeps_its_id_and_name():
    revoked = principals.revoke(ALICE, START)
    assert (revoked.id, revoked.name, revoked.revoked_at) == (ALICE.id, ALICE.name, START)


# -- scopes ------------------------------------------------------------------------------------------------------

GRANTED_BY = {
    "admin": {
        *("admin", "any", "jobs", "jobs:read", "tasks", "tasks:produce", "tasks:work", "tasks:read", "read"),
        "answer",
    },
    "jobs": {"any", "jobs", "jobs:read"},
    "tasks": {"any", "tasks", "tasks:produce", "tasks:work", "tasks:read"},
    "tasks:produce": {"any", "tasks:produce", "tasks:read"},
    "tasks:work": {"any", "tasks:work", "tasks:read"},
    "answer": {"any", "answer"},
    "read": {"any", "jobs:read", "tasks:read", "read"},
}
ALL_REQUIRED = sorted({operation.scope for operation in OPERATIONS if operation.scope is not None})


def test_every_scope_is_in_the_table_of_grants():
    assert GRANTED_BY.keys() == SCOPES.keys()
    assert {word for required in ALL_REQUIRED for word in required.split()} <= GRANTED_BY["admin"]


@pytest.mark.parametrize("required", ALL_REQUIRED)
@pytest.mark.parametrize("held", SCOPES)
def test_a_scope_grants_exactly_what_the_table_lists(held, required):
    expected = any(word in GRANTED_BY[held] for word in required.split())
    assert principals.grants(held, required) is expected


@given(st.lists(st.sampled_from(sorted(SCOPES)), max_size=4), st.sampled_from(ALL_REQUIRED))
def test_several_scopes_grant_the_union_of_their_grants(held, required):
    each = any(principals.grants(scope, required) for scope in held)
    assert principals.grants(" ".join(held), required) is each


@pytest.mark.parametrize("required", ALL_REQUIRED)
def test_a_key_without_scopes_grants_nothing(required):
    assert not principals.grants("", required)


# -- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "name", "covered"),
    [
        ({}, "anything", True),
        ({}, "", True),
        ({"prefix": "ci/"}, "ci/deploy", True),
        ({"prefix": "ci/"}, "ci/", True),
        ({"prefix": "ci/"}, "ci", False),
        ({"prefix": "ci/"}, "xci/", False),
        ({"prefix": "ci/"}, "", False),
        ({"namespace": "team"}, "team.lock", True),
        ({"namespace": "team"}, "teams.lock", False),
        ({"namespace": "team", "prefix": "ci/"}, "ci/deploy", False),
    ],
)
def test_a_key_covers_the_names_that_begin_with_its_prefix(limits, name, covered):
    assert Principal("default", "p", **limits).covers(name) is covered


# -- expiry ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "key", "now", "expected"),
    [
        ({}, "new", START, True),
        ({}, "other", START, False),
        ({"revoked_at": START}, "new", START - 1, False),
        ({"expires_at": START}, "new", START - 1, True),
        ({"expires_at": START}, "new", START, False),
        ({"old_until": START}, "old", START - 1, True),
        ({"old_until": START}, "old", START, False),
        ({"old_until": START}, "new", START, True),
        ({"old_until": None}, "old", START, False),
        ({"old_until": START, "expires_at": START - 5}, "old", START - 1, False),
        ({"old_until": START, "revoked_at": START}, "old", START - 1, False),
    ],
)
def test_a_key_is_valid_until_the_instant_it_expires(times, key, now, expected):
    principal = Principal("default", "p", key_hash="new", old_key_hash="old", **times)
    assert principals.accepts_key(principal, key, now) is expected


@pytest.mark.parametrize(
    ("change", "lasts"),
    [
        ({}, True),
        ({"scopes": "jobs tasks read"}, False),
        ({"revoked_at": START}, False),
        ({"expires_at": START}, False),
    ],
)
def test_a_permanent_admin_has_the_scope_and_no_expiry(change, lasts):
    assert principals.is_permanent_admin(replace(ALICE, **({"scopes": ALL_SCOPES} | change))) is lasts


# -- delegation --------------------------------------------------------------------------------------------------

MAKER = Principal("default", "maker", scopes="admin", prefix="ci/", expires_at=START + 100)


def make_key(maker=MAKER, expires_at=START + 100, **key):
    required = Principal("default", "new", **({"scopes": "jobs", "prefix": "ci/"} | key))
    return principals.delegate(maker, required, expires_at, START)


def test_a_key_has_the_scopes_prefix_and_expiry_that_its_maker_set():
    key = make_key(prefix="ci/deploy", expires_at=START + 99)
    assert (key.scopes, key.prefix, key.expires_at, key.created_at) == ("jobs", "ci/deploy", START + 99, START)


@pytest.mark.parametrize(
    "beyond",
    [
        {"prefix": None},
        {"prefix": "ci"},
        {"prefix": "other/"},
        {"expires_at": None},
        {"expires_at": START + 101},
    ],
)
def test_a_key_with_more_rights_than_its_maker_is_refused(beyond):
    with pytest.raises(Forbidden):
        make_key(**beyond)


@pytest.mark.parametrize("required", SCOPES)
@pytest.mark.parametrize("held", SCOPES)
def test_a_delegated_key_grants_nothing_that_its_maker_lacks(held, required):
    maker = Principal("default", "maker", scopes=held)
    if required in GRANTED_BY[held]:
        assert make_key(maker, None, scopes=required).scopes == required
    else:
        with pytest.raises(Forbidden, match=required):
            make_key(maker, None, scopes=required)


def test_a_single_scope_that_the_maker_lacks_is_refused():
    with pytest.raises(Forbidden, match="does not have the scope jobs"):
        make_key(Principal("default", "maker", scopes="tasks"), None, scopes="tasks jobs")


# -- rotation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "after"), [(STATIC, ROTATED), (ROTATED, ROTATED), (ISSUED, ISSUED), (LOCAL, LOCAL)])
def test_a_rotation_replaces_the_key_and_the_old_one_expires(source, after):
    before = Principal("default", "p", source=source, key_hash="one", scopes="jobs", prefix="x", expires_at=START + 9)
    rotated = principals.rotate(before, "two", "hf_live_…", START + 5)
    assert (rotated.key_hash, rotated.old_key_hash, rotated.old_until) == ("two", "one", START + 5)
    assert (rotated.source, rotated.shown) == (after, "hf_live_…")
    assert (rotated.scopes, rotated.prefix, rotated.expires_at) == ("jobs", "x", START + 9)
    assert principals.accepts_key(rotated, "one", START + 4)
    assert not principals.accepts_key(rotated, "one", START + 5)


def test_after_two_rotations_only_the_previous_key_still_works():
    twice = principals.rotate(principals.rotate(ALICE, "two", "", START + 9), "three", "", START + 9)
    assert [principals.accepts_key(twice, key, START) for key in (ALICE.key_hash, "two", "three")] == [
        False,
        True,
        True,
    ]


@given(random_bytes)
def test_a_masked_key_cannot_be_used(random):
    key = principals.format_key(random)
    shown = principals.mask_key(key)
    start, _, end = shown.partition("…")
    assert key.startswith(start)
    assert key.endswith(end)
    assert len(start) + len(end) == 16
    assert shown not in key
