"""Which user or session is the holder, and the pseudonym that other users see."""

import hashlib
import uuid

import pytest

from tests.compat.octostore.expect import acquired, held, no_such_session, refused, released, success

ADMIN_PSEUDONYM = "1eac8f2d-3605-81f1-878d-850dbe51824b"


def pseudonym(holder: str) -> str:
    """OctoStore's recipe for a public holder id, written down again."""
    secret = uuid.UUID(holder).bytes
    public = bytearray(hashlib.sha256(b"octostore.public-lock-holder.v1\0" + secret).digest()[:16])
    public[6] = (public[6] & 0x0F) | 0x80
    public[8] = (public[8] & 0x3F) | 0x80
    if public == secret:
        public[0] ^= 1
    return str(uuid.UUID(bytes=bytes(public)))


@pytest.mark.parametrize(
    ("holder", "public"),
    [
        ("00000000-0000-0000-0000-000000000000", ADMIN_PSEUDONYM),
        ("550e8400-e29b-41d4-a716-446655440000", "c1a8265b-ed5d-8c5e-8c1c-6eda395b05ff"),
    ],
)
def test_pseudonyms_equal_those_of_octostore(holder, public):
    assert pseudonym(holder) == public


def test_a_durable_lock_is_held_by_the_user(alice, bob, lock, session):
    user_id = success(alice.get(f"/sessions/{session}"))["user_id"]
    acquired(alice.acquire(lock))
    assert held(bob.acquire(lock))["holder_id"] == pseudonym(user_id)
    assert success(bob.read_lock(lock))["holder_id"] == pseudonym(user_id)


def test_a_durable_lock_with_a_session_is_still_held_by_the_user(alice, bob, lock, session):
    user_id = success(alice.get(f"/sessions/{session}"))["user_id"]
    acquired(alice.acquire(lock, session_id=session))
    assert success(bob.read_lock(lock))["holder_id"] == pseudonym(user_id)


def test_an_ephemeral_lock_is_held_by_the_session(alice, bob, lock, session):
    acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    assert held(bob.acquire(lock))["holder_id"] == pseudonym(session)


def test_the_admin_is_the_all_zero_user(admin, bob, lock):
    lease = acquired(admin.acquire(lock))
    assert success(bob.read_lock(lock))["holder_id"] == ADMIN_PSEUDONYM
    released(admin.release(lock, lease["lease_id"]))


def test_the_list_shows_the_same_pseudonym(alice, lock, session):
    acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    (row,) = success(alice.get(f"/locks?prefix={lock}"))["locks"]
    assert row["holder_id"] == pseudonym(session)


def test_a_pseudonym_is_not_accepted_as_a_session_id(alice, lock, session):
    acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    public = success(alice.read_lock(lock))["holder_id"]
    no_such_session(alice.get(f"/sessions/{public}"))
    no_such_session(alice.keep_alive(public))


@pytest.fixture
def ways(alice):
    """The ways in which one user may ask for a lock."""
    one, two = (alice.open_session().json["session_id"] for _ in range(2))
    return {
        "durable": {},
        "durable in one": {"session_id": one},
        "durable in two": {"session_id": two},
        "ephemeral in one": {"session_id": one, "ephemeral": True},
        "ephemeral in two": {"session_id": two, "ephemeral": True},
    }


@pytest.mark.parametrize(
    ("existing", "asked", "result"),
    [
        ("durable", "durable", acquired),
        ("durable", "durable in one", acquired),
        ("durable in one", "durable in two", acquired),
        ("durable in one", "durable", acquired),
        ("durable", "ephemeral in one", held),
        ("durable in one", "ephemeral in one", held),
        ("ephemeral in one", "durable", held),
        ("ephemeral in one", "durable in one", held),
        ("ephemeral in one", "ephemeral in one", acquired),
        ("ephemeral in one", "ephemeral in two", held),
    ],
)
def test_a_user_acquires_a_lock_that_it_already_holds(alice, lock, ways, existing, asked, result):  # noqa: PLR0917  (pytest passes names)
    lease = acquired(alice.acquire(lock, **ways[existing]))
    answer = result(alice.acquire(lock, **ways[asked]))
    if result is acquired:
        assert answer["lease_id"] == lease["lease_id"]


def test_two_processes_with_one_token_contend_through_their_sessions(alice, lock, ways):
    acquired(alice.acquire(lock, **ways["ephemeral in one"]))
    assert held(alice.acquire(lock, **ways["ephemeral in two"]))["holder_id"] == pseudonym(
        ways["ephemeral in one"]["session_id"]
    )


def test_acquiring_again_in_another_session_does_not_move_the_lock(alice, lock, ways):
    one, two = ways["durable in one"]["session_id"], ways["durable in two"]["session_id"]
    acquired(alice.acquire(lock, session_id=one))
    acquired(alice.acquire(lock, session_id=two))
    assert success(alice.get(f"/sessions/{one}"))["lock_count"] == 1
    assert success(alice.get(f"/sessions/{two}"))["lock_count"] == 0


@pytest.mark.parametrize("verb", ["renew", "release"])
def test_the_lease_of_an_ephemeral_lock_needs_no_session_id(alice, lock, session, verb):
    lease = acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    assert getattr(alice, verb)(lock, lease["lease_id"]).status == 200


@pytest.mark.parametrize("verb", ["renew", "release"])
def test_an_ephemeral_lock_of_another_user_is_a_missing_session(alice, bob, lock, session, verb):
    lease = acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    no_such_session(getattr(bob, verb)(lock, lease["lease_id"]))
    no_such_session(getattr(bob, verb)(lock, str(uuid.uuid4())))


@pytest.mark.parametrize("verb", ["renew", "release"])
def test_a_wrong_lease_id_of_an_own_ephemeral_lock_is_refused(alice, lock, session, verb):
    acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    refused(getattr(alice, verb)(lock, str(uuid.uuid4())), 400, "lease_not_current")


@pytest.mark.parametrize("verb", ["renew", "release"])
def test_the_admin_cannot_renew_or_release_a_lease_of_another_user(alice, admin, lock, verb):
    lease = acquired(alice.acquire(lock))
    refused(getattr(admin, verb)(lock, lease["lease_id"]), 400, "lease_not_current")


def test_the_admin_cannot_steal_a_lock(alice, admin, lock):
    acquired(alice.acquire(lock))
    held(admin.acquire(lock))
