"""Keys whose checksum catches a slip of the finger, and what a key opens."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import principal as principals
from holdfast.core.principal import ALL_SCOPES, WORK_SCOPES
from tests.support import ALICE, START

LETTERS = string.digits + string.ascii_letters
random_bytes = st.binary(min_size=24, max_size=24)


@given(random_bytes, st.sampled_from(["live", "test"]))
def test_a_key_is_well_formed_and_in_its_promised_form(random, kind):
    key = principals.format_key(random, kind)
    assert re.fullmatch(rf"hf_{kind}_[0-9A-Za-z]{{32}}_[0-9A-Za-z]{{6}}", key)
    assert principals.is_well_formed(key)


@given(random_bytes, st.integers(0, 37), st.sampled_from(LETTERS))
def test_any_one_wrong_character_is_noticed(random, place, letter):
    key = principals.format_key(random)
    at = len("hf_live_") + place + (place >= 32)
    slip = key[:at] + letter + key[at + 1 :]
    assert principals.is_well_formed(slip) is (slip == key)


@given(random_bytes)
def test_a_live_key_is_no_test_key(random):
    assert not principals.is_well_formed(principals.format_key(random).replace("live", "test"))


@given(random_bytes, random_bytes)
def test_different_chance_makes_different_keys(one, other):
    low = 190 // 8  # the top bits beyond 190 are cut
    assert (principals.format_key(one) == principals.format_key(other)) <= (one[-low:] == other[-low:])


@pytest.mark.parametrize("key", ["hf_live_", "hf_live_abc", "hf_test_" + "0" * 32, "hf_live_" + "0" * 32 + "_000000"])
def test_a_piece_of_a_key_is_none(key):
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
def test_a_key_opens_the_doors_of_its_scopes_and_an_administrator_s_opens_all(scopes, scope, may):
    assert principals.Principal("default", "p", scopes=scopes).may(scope) is may


def test_a_revoked_principal_keeps_its_id_and_name():
    revoked = principals.revoke(ALICE, START)
    assert (revoked.id, revoked.name, revoked.revoked_at) == (ALICE.id, ALICE.name, START)
