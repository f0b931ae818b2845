"""Configured keys follow the settings: they are added, changed, revoked and moved."""

from __future__ import annotations

from holdfast.core.principal import ISSUED, STATIC, Principal
from holdfast.engine.verbs.accounts import KeySetting, SyncConfiguredKeys, principal_id
from tests.support import ACCOUNT, CAUSE, check_log, every, run


def sync(store, *pairs, revoke=(STATIC,), source=STATIC):
    configured = tuple(KeySetting(name, source, key, "jobs") for name, key in pairs)
    with store.read() as reader:
        existing = tuple(row.id for row in reader.principals(ACCOUNT))
    return run(
        store, SyncConfiguredKeys(account=ACCOUNT, cause=CAUSE, configured=configured, existing=existing, revoke=revoke)
    )


def who_has(store, key):
    with store.read() as reader:
        found = reader.principal(key)
        return None if found is None else found.name


def test_configured_tokens_are_added_changed_and_revoked(store):
    assert sync(store, ("alice", "k1"), ("bob", "k2")) == 2
    assert sync(store, ("alice", "k1"), ("bob", "k2")) == 0
    assert sync(store, ("alice", "k3")) == 2
    assert [who_has(store, key) for key in ("k1", "k2", "k3")] == [None, None, "alice"]
    assert sync(store, ("alice", "k3"), ("bob", "k2")) == 1
    assert who_has(store, "k2") == "bob"
    check_log(store)


def test_a_configured_name_is_one_principal_with_any_token(store):
    sync(store, ("alice", "k1"))
    sync(store, ("alice", "k2"))
    assert [row.id for row in every(store, Principal)] == [principal_id(STATIC, "alice")]


def test_issued_keys_stay_when_the_settings_change(store):
    sync(store, ("first", "k1"), source=ISSUED)
    sync(store, ("alice", "k2"))
    assert who_has(store, "k1") == "first"


def test_a_configured_token_can_move_to_another_name(store):
    sync(store, ("alice", "k1"))
    sync(store, ("alicia", "k1"))
    assert who_has(store, "k1") == "alicia"
    check_log(store)


def test_two_configured_names_can_swap_tokens(store):
    sync(store, ("alice", "k1"), ("bob", "k2"))
    sync(store, ("alice", "k2"), ("bob", "k1"))
    assert [who_has(store, key) for key in ("k1", "k2")] == ["bob", "alice"]
    check_log(store)
