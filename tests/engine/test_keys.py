"""Commands of keys on every store: no caller gains rights, and the log records everything but secrets."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core.errors import ConfiguredKey, Forbidden, LastAdmin, Missing, NameTaken, UnknownKey
from holdfast.core.event import Event
from holdfast.core.principal import (
    ADMIN_ID,
    ALL_SCOPES,
    ISSUED,
    LOCAL,
    ROOT,
    ROTATED,
    STATIC,
    Principal,
    admin_principal,
)
from holdfast.core.row import SECOND
from holdfast.engine.verbs.accounts import CloseAccount, KeySetting, RegisterAccount, SyncConfiguredKeys, principal_id
from holdfast.engine.verbs.keys import CreateKey, RegisterUser, RevokeKey, RotateKey
from tests.support import ACCOUNT, CAUSE, START, check_log, every, put, run, transact

BASE = {"account": ACCOUNT, "cause": CAUSE}
ROOT_USER = Principal(ACCOUNT, "boss", name="boss", key_hash="boss-key", scopes=ALL_SCOPES)


def key_named(name="new", **more):
    return Principal(ACCOUNT, name, **({"name": name, "key_hash": f"{name}-key", "scopes": "jobs"} | more))


def create_key(key, by=ROOT_USER, lifetime=None, sent=""):
    return CreateKey(**BASE, by=by, by_hash=sent, key_id=key.id, key=key, lifetime=lifetime)


def rotate(key_id="new", key_hash="second", grace=0, by=ROOT_USER, sent="", **more):
    fields = {"key_id": key_id, "key_hash": key_hash, "shown": "hf_live_…", "grace": grace}
    return RotateKey(**(BASE | more), **fields, by=by, by_hash=sent)


def revoke(key_id, *others, by=ROOT_USER, sent=""):
    return RevokeKey(**BASE, by=by, by_hash=sent, key_id=key_id, others=others)


def test_a_rotated_key_cannot_rotate_again_during_its_grace(store):
    key = run(store, create_key(key_named())).key
    run(store, rotate(by=key, sent="new-key", grace=3600 * SECOND))
    with pytest.raises(Forbidden):
        run(store, rotate(by=key, sent="new-key", key_hash="third"))
    assert run(store, rotate(by=key, sent="second", key_hash="third")).key.key_hash == "third"


def test_a_rotated_key_changes_nothing_about_keys_during_its_grace(store):
    key = run(store, create_key(key_named(scopes="admin"))).key
    run(store, create_key(key_named("other", scopes="admin")))
    run(store, rotate(by=key, sent="new-key", grace=3600 * SECOND))
    for command in (
        create_key(key_named("more", scopes="admin"), by=key, sent="new-key"),
        revoke("new", "other", by=key, sent="new-key"),
        revoke("other", "new", by=key, sent="new-key"),
        rotate("other", by=key, sent="new-key"),
        CloseAccount(**BASE, keys=("new", "other"), by=key, by_hash="new-key"),
    ):
        with pytest.raises(Forbidden, match="was rotated"):
            run(store, command)
    assert run(store, revoke("other", "new", by=key, sent="second")).key.revoked_at == START


def test_a_key_that_another_server_revoked_changes_nothing_about_keys(store):
    """The server still has the key in its cache: the row decides."""
    key = run(store, create_key(key_named(scopes="admin"))).key
    run(store, create_key(key_named("other", scopes="admin")))
    run(store, revoke("new", "other"))
    for command in (
        create_key(key_named("more"), by=key, sent="new-key"),
        revoke("other", "new", by=key, sent="new-key"),
        rotate("other", by=key, sent="new-key"),
        CloseAccount(**BASE, keys=("other",), by=key, by_hash="new-key"),
    ):
        with pytest.raises(UnknownKey):
            run(store, command)


def test_revoking_a_key_with_more_rights_is_refused(store):
    run(store, create_key(key_named("wide", scopes="admin")))
    narrow = run(store, create_key(key_named("narrow", scopes="admin", prefix="ci/"))).key
    with pytest.raises(Forbidden):
        run(store, revoke("wide", "narrow", by=narrow))
    assert run(store, revoke("narrow", "wide", by=narrow)).key.revoked_at == START


def register(name, key_hash="h", namespace=None):
    fields = {"key_id": principal_id(LOCAL, name), "name": name, "namespace": namespace}
    return RegisterUser(**BASE, **fields, key_hash=key_hash, shown="hf_live_…")


def sync(store, *pairs, source=STATIC):
    """Sync the configured keys as a server does at its start."""
    configured = tuple(KeySetting(name, source, key, "jobs tasks") for name, key in pairs)
    with store.read() as reader:
        existing = tuple(row.id for row in reader.principals(ACCOUNT))
    revoked = (STATIC, ROTATED, ROOT)
    return run(
        store,
        SyncConfiguredKeys(account=ACCOUNT, cause=CAUSE, configured=configured, existing=existing, revoke=revoked),
    )


def owners_of(store, *keys):
    with store.read() as reader:
        found = [reader.principal(key) for key in keys]
    return [None if each is None else each.name for each in found]


def kinds(store):
    return [event.kind for event in every(store, Event)]


# -- making ------------------------------------------------------------------------------------------------------


def test_a_created_key_has_its_times_by_the_clock_of_the_store(store, clock):
    put(store, ROOT_USER)
    clock.advance(7)
    made = run(store, create_key(key_named(prefix="ci/"), lifetime=60 * SECOND)).key
    assert (made.created_at, made.expires_at) == (START + 7 * SECOND, START + 67 * SECOND)
    assert owners_of(store, "new-key") == ["new"]
    clock.advance(59)
    assert owners_of(store, "new-key") == ["new"]
    clock.advance(1)
    assert owners_of(store, "new-key") == [None]
    check_log(store)


@pytest.mark.parametrize(
    ("maker", "wanted", "lifetime"),
    [
        ({"scopes": "tasks"}, {"scopes": "jobs"}, None),
        ({"scopes": "tasks:work"}, {"scopes": "tasks"}, None),
        ({"scopes": "read"}, {"scopes": "admin"}, None),
        ({"prefix": "ci/"}, {}, None),
        ({"prefix": "ci/"}, {"prefix": "prod/"}, None),
        ({"expires_at": START + 10 * SECOND}, {}, None),
        ({"expires_at": START + 10 * SECOND}, {}, 11 * SECOND),
    ],
)
def test_creating_a_key_with_more_rights_is_refused(store, maker, wanted, lifetime):
    with pytest.raises(Forbidden):
        run(store, create_key(key_named(**wanted), replace(ROOT_USER, **maker), lifetime))
    assert every(store, Principal) == []
    assert kinds(store) == []


def test_a_key_with_exactly_the_rights_of_its_maker_can_be_created(store):
    maker = replace(ROOT_USER, prefix="ci/", expires_at=START + 10 * SECOND)
    assert run(store, create_key(key_named(scopes="admin", prefix="ci/"), maker, 10 * SECOND)).key.expires_at


# -- rotating ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grace", [0, 5])
def test_a_rotated_key_works_until_its_grace_is_over(store, clock, grace):
    put(store, key_named())
    run(store, rotate(grace=grace * SECOND))
    assert owners_of(store, "new-key", "second") == ["new" if grace else None, "new"]
    clock.advance(grace)
    assert owners_of(store, "new-key", "second") == [None, "new"]
    check_log(store)


def test_a_second_rotation_ends_the_key_before_the_previous_one_at_once(store):
    put(store, key_named())
    transact(store, rotate(key_hash="second", grace=9 * SECOND), rotate(key_hash="third", grace=9 * SECOND))
    assert owners_of(store, "new-key", "second", "third") == [None, "new", "new"]
    check_log(store)


@pytest.mark.parametrize(
    "limit", [{"scopes": "tasks"}, {"prefix": "ci/"}, {"namespace": "team"}, {"expires_at": START + 10 * SECOND}]
)
def test_rotating_another_key_with_more_rights_is_refused(store, limit):
    put(store, ROOT_USER)
    with pytest.raises(Forbidden):
        run(store, rotate(ROOT_USER.id, by=key_named("limited", **({"scopes": "admin"} | limit))))
    assert owners_of(store, "boss-key", "second") == ["boss", None]


def test_every_key_can_rotate_itself(store):
    limited = key_named(scopes="read", prefix="ci/", expires_at=START + 10 * SECOND)
    put(store, limited)
    rotated = run(store, rotate(by=limited)).key
    assert (rotated.scopes, rotated.prefix, rotated.expires_at) == ("read", "ci/", START + 10 * SECOND)


@pytest.mark.parametrize("key_id", ["absent", "revoked", "foreign"])
def test_an_absent_key_cannot_be_rotated(store, key_id):
    put(store, key_named("revoked", revoked_at=START), replace(key_named("foreign"), account="other"))
    with pytest.raises(Missing):
        run(store, rotate(key_id))


def test_configured_keys_cannot_be_rotated_or_revoked(store):
    put(store, key_named("root", source=ROOT), key_named("listed", source=STATIC))
    for command in (
        rotate("root"),
        rotate(ADMIN_ID, by=admin_principal(ACCOUNT, "h")),
        revoke("root"),
        revoke("listed"),
    ):
        with pytest.raises(ConfiguredKey):
            run(store, command)
    assert owners_of(store, "root-key", "listed-key") == ["root", "listed"]


# -- revoking ----------------------------------------------------------------------------------------------------


def test_a_revoked_key_is_invalid_and_its_principal_is_kept(store):
    put(store, ROOT_USER, key_named(old_key_hash="older", old_until=START + 9 * SECOND))
    assert run(store, revoke("new", "boss")).key.revoked_at == START
    assert owners_of(store, "new-key", "older") == [None, None]
    again = run(store, revoke("new", "boss")).key
    assert (again.revoked_at, kinds(store)[2:]) == (START, ["principal.revoked"])
    check_log(store)


def test_an_absent_key_cannot_be_revoked(store):
    put(store, replace(key_named("foreign"), account="other"))
    for key_id in ("absent", "foreign"):
        with pytest.raises(Missing):
            run(store, revoke(key_id))
    assert owners_of(store, "foreign-key") == ["foreign"]


@pytest.mark.parametrize(
    ("other", "allowed"),
    [
        ({}, True),
        ({"scopes": "jobs tasks read"}, False),
        ({"revoked_at": START}, False),
        ({"expires_at": START + 10**15}, False),
        (None, False),
    ],
)
def test_the_last_admin_key_cannot_be_revoked(store, other, allowed):
    put(store, ROOT_USER)
    if other is not None:
        put(store, key_named("other", **({"scopes": "admin"} | other)))
    if allowed:
        run(store, revoke("boss", "other"))
    else:
        with pytest.raises(LastAdmin):
            run(store, revoke("boss", "other"))
    assert owners_of(store, "boss-key") == [None if allowed else "boss"]


def test_two_admin_keys_that_revoke_each_other_do_not_both_succeed(store):
    put(store, ROOT_USER, key_named("other", scopes="admin"))
    outcomes = transact(store, revoke("boss", "other"), revoke("other", "boss"))
    assert [isinstance(outcome, LastAdmin) for outcome in outcomes] == [False, True]


def test_a_key_without_the_scope_admin_can_always_be_revoked(store):
    put(store, key_named())
    assert run(store, revoke("new")).key.revoked_at == START


# -- users -------------------------------------------------------------------------------------------------------


def test_a_user_name_is_unique_in_any_letter_case(store):
    assert run(store, register("Alice", "h1", "team")).key.name_prefix == "team."
    for name in ("Alice", "alice", "ALICE"):
        with pytest.raises(NameTaken):
            run(store, register(name, "h2"))
    assert owners_of(store, "h1", "h2") == ["Alice", None]
    check_log(store)


def test_two_registrations_of_one_name_in_one_batch_do_not_both_succeed(store):
    first, second = transact(store, register("Bob", "h1"), register("bob", "h2"))
    assert (first.key.name, type(second)) == ("Bob", NameTaken)


# -- configured tokens--------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rotations", [1, 2, 3])
def test_a_configured_token_that_was_rotated_never_works_again(store, clock, rotations):
    sync(store, ("alice", "listed"))
    row_id = principal_id(STATIC, "alice")
    for number in range(rotations):
        run(store, rotate(row_id, f"own-{number}", by=Principal(ACCOUNT, row_id)))
    last = f"own-{rotations - 1}"
    for _ in range(2):
        sync(store, ("alice", "listed"))
        assert owners_of(store, "listed", last) == [None, "alice"]
    sync(store)
    assert owners_of(store, "listed", last) == [None, None]
    sync(store, ("alice", "listed"))
    assert owners_of(store, "listed", last) == [None, None]
    check_log(store)


def test_another_configured_token_replaces_a_rotated_key_at_once(store):
    sync(store, ("alice", "listed"))
    row_id = principal_id(STATIC, "alice")
    run(store, rotate(row_id, "own", grace=3600 * SECOND, by=Principal(ACCOUNT, row_id)))
    assert owners_of(store, "listed", "own") == ["alice", "alice"]
    sync(store, ("alice", "fresh"))
    assert owners_of(store, "listed", "own", "fresh") == [None, None, "alice"]
    assert [row.source for row in every(store, Principal)] == [STATIC]
    check_log(store)


def test_a_rotated_token_whose_key_was_revoked_stays_revoked(store):
    sync(store, ("alice", "listed"))
    row_id = principal_id(STATIC, "alice")
    run(store, rotate(row_id, "own", by=Principal(ACCOUNT, row_id)))
    run(store, revoke(row_id))
    sync(store, ("alice", "listed"))
    assert owners_of(store, "listed", "own") == [None, None]


# -- the log -----------------------------------------------------------------------------------------------------


def test_no_event_contains_a_key_or_its_hash(store):
    run(store, RegisterAccount(account="acct", cause=CAUSE, principal_id="p", key_hash="hash-one", shown="hf_live_…"))
    run(store, rotate("p", "hash-two", account="acct", by=Principal("acct", "p")))
    sync(store, ("alice", "hash-three"))
    run(store, rotate(principal_id(STATIC, "alice"), "hash-four", by=Principal(ACCOUNT, principal_id(STATIC, "alice"))))
    logged_data = "".join(event.data for event in every(store, Event))
    assert "key_hash" in logged_data
    assert not [number for number in ("one", "two", "three", "four") if f"hash-{number}" in logged_data]
    assert [row.source for row in every(store, Principal)] == [ISSUED, ROTATED]
    check_log(store)
