"""Access lists: the stored form, tokens only as hashes, and who is allowed."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.core import acl
from holdfast.core.errors import Forbidden, Invalid
from holdfast.core.principal import Principal

TOKEN = "a-bearer-token-nobody-may-read"


def test_normalising_ignores_order_case_duplicates_and_blanks():
    forms = [["user:Bob", "user:alice"], ["user:alice", " user:bob "], ["user:ALICE", "user:bob", "user:alice"]]
    assert {acl.normalise(form) for form in forms} == {'["user:alice","user:bob"]'}


def test_a_token_is_stored_as_its_hash_and_displayed_redacted():
    stored = acl.normalise([f"token:{TOKEN}", "user:bob"])
    assert TOKEN not in stored
    assert acl.hash_token(TOKEN) in stored
    assert acl.redact(stored) == ["token:[redacted]", "user:bob"]


@pytest.mark.parametrize(
    "entries",
    [
        [], ["user:bob"] * 101, ["bob"], ["user:"], ["token:"], ["user:a b"], ["user:" + "a" * 65], ["user:bj\u00f6rn"],
        ["group:all"], ["USER:bob"], ["token:" + "x" * 251], ["user:bob\n"[:-1] + "\nx"], [""],
    ],
)  # fmt: skip
def test_an_invalid_access_list_is_refused(entries):
    with pytest.raises(Invalid):
        acl.normalise(entries)


@pytest.mark.parametrize("entries", [["user:bob"] * 100, ["user:" + "a" * 64], ["token:" + "x" * 250]])
def test_an_access_list_at_its_limits_is_accepted(entries):
    assert msgspec.json.decode(acl.normalise(entries))


@pytest.mark.parametrize(
    ("entries", "username", "token", "allowed"),
    [
        (None, "mallory", None, True),
        (["user:alice"], "alice", None, True),
        (["user:alice"], "ALICE", None, True),
        (["user:alice"], "alic", None, False),
        (["user:alice"], "bob", TOKEN, False),
        ([f"token:{TOKEN}"], "bob", TOKEN, True),
        ([f"token:{TOKEN}"], "bob", TOKEN + "x", False),
        ([f"token:{TOKEN}"], "bob", None, False),
    ],
)
def test_only_principals_on_the_list_are_allowed(entries, username, token, allowed):
    stored = None if entries is None else acl.normalise(entries)
    hashed = None if token is None else acl.hash_token(token)
    if allowed:
        acl.check_allowed(stored, Principal("default", "someone", name=username, key_hash=hashed))
    else:
        with pytest.raises(Forbidden):
            acl.check_allowed(stored, Principal("default", "someone", name=username, key_hash=hashed))


def test_a_user_named_like_a_token_entry_is_not_accepted_for_it():
    stored = acl.normalise([f"token:{TOKEN}"])
    with pytest.raises(Forbidden):
        acl.check_allowed(stored, Principal("default", "someone", name=acl.token_entry(acl.hash_token(TOKEN))))
