"""Killed without warning and started again: whatever was acknowledged is there."""

import uuid
from types import SimpleNamespace

import pytest

from tests.compat.octostore.expect import ABSENT_LEASE, acquired, delayed, held, refused, released, success
from tests.compat.octostore.server import static_tokens


@pytest.fixture
def reborn(new_server):
    """One life, a `kill -9`, and the next life, in which bob is no longer on the list."""
    server = new_server().start()
    alice, bob, anyone = server.user("alice-1"), server.user("bob-1"), server.anyone
    before = SimpleNamespace(server=server, alice=alice, bob=bob, anyone=anyone, carol=server.user("bob-2"))
    before.first_free = success(alice.look("unused"))["fencing_token"]
    before.lease = acquired(alice.acquire("held", ttl_seconds=300, metadata="note"))
    before.session = success(alice.open_session(ttl_seconds=300), 201)["session_id"]
    before.user_id = success(alice.get(f"/sessions/{before.session}"))["user_id"]
    before.ephemeral = acquired(alice.acquire("bound", session_id=before.session, ephemeral=True, ttl_seconds=300))
    listed = acquired(alice.acquire("listed", acl={"acquire": [f"user:{alice.name}"]}))
    released(alice.release("listed", listed["lease_id"]))
    cooling = acquired(alice.acquire("cooling", lock_delay_seconds=30))
    released(alice.release("cooling", cooling["lease_id"]))
    before.available_at = delayed(alice.acquire("cooling"))["available_at"]
    before.leadership = success(anyone.campaign("some-room", ttl_seconds=300, metadata="desk"))
    last = acquired(alice.acquire("last"))
    released(alice.release("last", last["lease_id"]))
    before.last_token = last["fencing_token"]
    server.kill()
    server.tokens = static_tokens("bob-1")
    server.start()
    return before


def test_everything_acknowledged_survives_a_kill(reborn):
    """One story, one restart: a test for each sentence would start the server ten times."""
    alice, carol, anyone = reborn.alice, reborn.carol, reborn.anyone
    assert reborn.first_free == 1, "an empty store counts from one"
    assert reborn.lease["fencing_token"] == 1

    seen = success(carol.look("held"))
    assert seen["expires_at"] == reborn.lease["expires_at"]
    assert (seen["metadata"], seen["fencing_token"]) == ("note", reborn.lease["fencing_token"])
    held(carol.acquire("held"))
    success(alice.renew("held", reborn.lease["lease_id"]))
    released(alice.release("held", reborn.lease["lease_id"]))

    session = success(alice.get(f"/sessions/{reborn.session}"))
    assert (session["user_id"], session["lock_count"], session["active"]) == (reborn.user_id, 1, True)
    success(alice.renew("bound", reborn.ephemeral["lease_id"]))
    assert alice.delete(f"/sessions/{reborn.session}").status == 204
    assert success(alice.look("bound"))["status"] == "free"

    assert success(carol.look("listed"))["acl"] == {"acquire": ["user:alice-1"]}
    refused(carol.acquire("listed"), 403, "forbidden")
    assert delayed(carol.acquire("cooling"))["available_at"] == reborn.available_at

    leader = success(anyone.get("/elections/some-room"))["leader"]
    assert (leader["metadata"], leader["term"]) == ("desk", reborn.leadership["leader"]["term"])
    success(anyone.renew_leadership("some-room", reborn.leadership["leader_token"]))

    assert success(carol.look("unused"))["fencing_token"] > reborn.last_token
    assert acquired(carol.acquire(f"new-{uuid.uuid4().hex}"))["fencing_token"] > reborn.last_token

    refused(reborn.bob.get("/locks"), 401, "authentication_failed")
    refused(alice.release("last", ABSENT_LEASE), 404, "lease_not_current")
