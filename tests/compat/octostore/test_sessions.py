"""Sessions: their ephemeral locks are released when they end."""

import uuid

import pytest

from tests.compat.octostore.expect import (
    acquired,
    assert_lasts,
    delayed,
    instant,
    malformed,
    no_such_session,
    refused,
    released,
    success,
)


@pytest.mark.parametrize(
    ("asked", "given"),
    [(0, 10), (1, 10), (10, 10), (11, 11), (60, 60), (299, 299), (300, 300), (301, 300), (4_294_967_295, 300)],
)
def test_a_session_ttl_is_limited_to_10_to_300_seconds(alice, asked, given):
    session = success(alice.open_session(ttl_seconds=asked), 201)
    assert_lasts(session["expires_at"], given)
    assert session["keepalive_interval_secs"] == given // 2


@pytest.mark.parametrize("fields", [{}, {"ttl_seconds": None}], ids=["absent", "null"])
def test_the_default_session_ttl_is_60_seconds(alice, fields):
    session = success(alice.open_session(**fields), 201)
    assert_lasts(session["expires_at"], 60)
    assert session["keepalive_interval_secs"] == 30


def test_opening_a_session_needs_an_object(alice):
    malformed(alice.post("/sessions"), 415)
    malformed(alice.send("POST", "/sessions", b"", Content_Type="application/json"), 400)
    malformed(alice.post("/sessions", None), 422)


def test_session_ids_are_uuids_and_differ(alice):
    one, two = (success(alice.open_session(), 201)["session_id"] for _ in range(2))
    assert one == str(uuid.UUID(one))
    assert one != two


def test_a_session_shows_its_owner_its_end_and_its_locks(alice, session):
    observed = success(alice.get(f"/sessions/{session}"))
    assert observed["session_id"] == session
    assert observed["user_id"] == str(uuid.UUID(observed["user_id"]))
    assert (observed["lock_count"], observed["active"]) == (0, True)
    assert_lasts(observed["expires_at"], 60)


def test_all_sessions_of_a_user_show_the_same_owner(alice, bob):
    owners = [
        success(caller.get(f"/sessions/{caller.open_session().json['session_id']}"))["user_id"]
        for caller in (alice, alice, bob)
    ]
    assert owners[0] == owners[1] != owners[2]


def test_the_admins_sessions_belong_to_the_all_zero_user(admin):
    session = success(admin.open_session(), 201)["session_id"]
    assert success(admin.get(f"/sessions/{session}"))["user_id"] == str(uuid.UUID(int=0))


def test_a_session_counts_ephemeral_and_durable_locks(alice, lock, session):
    def count():
        return success(alice.get(f"/sessions/{session}"))["lock_count"]

    acquired(alice.acquire(f"{lock}.a", session_id=session, ephemeral=True))
    durable = acquired(alice.acquire(f"{lock}.b", session_id=session))
    acquired(alice.acquire(f"{lock}.c"))
    assert count() == 2
    released(alice.release(f"{lock}.b", durable["lease_id"]))
    assert count() == 1


def test_keepalive_starts_the_sessions_own_ttl_again(alice):
    session = success(alice.open_session(ttl_seconds=100), 201)
    kept = success(alice.keep_alive(session["session_id"]))
    assert kept["session_id"] == session["session_id"]
    assert_lasts(kept["expires_at"], 100)
    assert instant(kept["expires_at"]) > instant(session["expires_at"])
    assert success(alice.get(f"/sessions/{session['session_id']}"))["expires_at"] == kept["expires_at"]


def test_keepalive_renews_the_session_and_not_its_locks(alice, lock, session):
    lease = acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    success(alice.keep_alive(session))
    assert success(alice.read_lock(lock))["expires_at"] == lease["expires_at"]


def test_renewing_a_lock_does_not_touch_its_session(alice, lock, session):
    before = success(alice.get(f"/sessions/{session}"))["expires_at"]
    lease = acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    success(alice.renew(lock, lease["lease_id"], ttl_seconds=3600))
    assert success(alice.get(f"/sessions/{session}"))["expires_at"] == before


# Ending.


def test_ending_a_session_has_an_empty_response(alice, session):
    answer = alice.delete(f"/sessions/{session}")
    assert (answer.status, answer.raw) == (204, b"")


def test_an_ended_session_is_not_found(alice, session):
    alice.delete(f"/sessions/{session}")
    no_such_session(alice.delete(f"/sessions/{session}"))
    no_such_session(alice.get(f"/sessions/{session}"))
    no_such_session(alice.keep_alive(session))


def test_ending_a_session_frees_its_ephemeral_locks(alice, bob, lock, session):
    lease = acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    alice.delete(f"/sessions/{session}")
    assert success(alice.read_lock(lock))["status"] == "free"
    refused(alice.renew(lock, lease["lease_id"]), 404, "lease_not_current")
    acquired(bob.acquire(lock))


def test_ending_a_session_leaves_its_durable_locks(alice, lock, session):
    lease = acquired(alice.acquire(lock, session_id=session))
    alice.delete(f"/sessions/{session}")
    assert success(alice.read_lock(lock))["fencing_token"] == lease["fencing_token"]
    success(alice.renew(lock, lease["lease_id"]))
    released(alice.release(lock, lease["lease_id"]))


def test_ending_a_session_starts_the_delay_of_its_locks(alice, bob, lock, session):
    acquired(alice.acquire(lock, session_id=session, ephemeral=True, lock_delay_seconds=20))
    alice.delete(f"/sessions/{session}")
    assert delayed(bob.acquire(lock))["lock_delay_seconds"] == 20


def test_ending_a_session_leaves_the_users_other_sessions(alice, lock, session):
    other = success(alice.open_session(), 201)["session_id"]
    acquired(alice.acquire(lock, session_id=other, ephemeral=True))
    alice.delete(f"/sessions/{session}")
    assert success(alice.get(f"/sessions/{other}"))["lock_count"] == 1
    assert success(alice.read_lock(lock))["status"] == "held"


# Sessions of other users are not found.

CALLS = {
    "get": lambda caller, session: caller.get(f"/sessions/{session}"),
    "delete": lambda caller, session: caller.delete(f"/sessions/{session}"),
    "keepalive": lambda caller, session: caller.keep_alive(session),
    "ephemeral acquire": lambda caller, session: caller.acquire("x", session_id=session, ephemeral=True),
    "durable acquire": lambda caller, session: caller.acquire("x", session_id=session),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_session_of_another_user_is_not_found(alice, bob, session, call):
    foreign = no_such_session(call(bob, session))
    absent = no_such_session(call(bob, str(uuid.uuid4())))
    assert foreign["details"] == absent["details"]
    assert success(alice.get(f"/sessions/{session}"))["active"]


def test_a_session_of_another_user_is_not_found_by_the_admin(admin, session):
    no_such_session(admin.get(f"/sessions/{session}"))


# Ids in paths.


@pytest.mark.parametrize("text", ["nonsense", "123", "00000000-0000-4000-8000-00000000000", "%FF", "a%2Fb"])
def test_an_id_that_is_not_a_uuid_is_refused_before_authentication(alice, anyone, text):
    for caller in (alice, anyone):
        malformed(caller.get(f"/sessions/{text}"), 400)
        malformed(caller.delete(f"/sessions/{text}"), 400)
        malformed(caller.keep_alive(text), 400)


def test_an_empty_id_in_a_path_is_not_a_uuid(alice):
    malformed(alice.keep_alive(""), 400)


@pytest.mark.parametrize(
    "spell",
    [
        str,
        lambda session: str(session).upper(),
        lambda session: session.hex,
        lambda session: f"%7B{session}%7D",
        lambda session: session.urn,
    ],
    ids=["hyphenated", "upper-case", "bare-hex", "braced", "urn"],
)
def test_every_spelling_of_a_uuid_is_accepted(alice, session, spell):
    observed = success(alice.get(f"/sessions/{spell(uuid.UUID(session))}"))
    assert observed["session_id"] == session
    assert success(alice.keep_alive(spell(uuid.UUID(session))))["session_id"] == session
