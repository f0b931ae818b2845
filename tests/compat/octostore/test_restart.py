"""A server that is killed and started again has everything it acknowledged."""

import uuid
from types import SimpleNamespace

import pytest

from tests.compat.octostore.expect import ABSENT_LEASE, acquired, delayed, held, refused, released, success
from tests.compat.octostore.server import static_tokens


@pytest.fixture
def restarted(new_server):
    """A server that was killed and restarted without the token of bob."""
    server = new_server().start()
    alice, bob, anyone = server.user("alice-1"), server.user("bob-1"), server.anyone
    before = SimpleNamespace(server=server, alice=alice, bob=bob, anyone=anyone, carol=server.user("bob-2"))
    before.first_free = success(alice.read_lock("unused"))["fencing_token"]
    before.lease = acquired(alice.acquire("held", ttl_seconds=300, metadata="note"))
    before.session = success(alice.open_session(ttl_seconds=300), 201)["session_id"]
    before.user_id = success(alice.get(f"/sessions/{before.session}"))["user_id"]
    before.ephemeral = acquired(alice.acquire("bound", session_id=before.session, ephemeral=True, ttl_seconds=300))
    listed = acquired(alice.acquire("listed", acl={"acquire": [f"user:{alice.name}"]}))
    released(alice.release("listed", listed["lease_id"]))
    lease = acquired(alice.acquire("delayed", lock_delay_seconds=30))
    released(alice.release("delayed", lease["lease_id"]))
    before.available_at = delayed(alice.acquire("delayed"))["available_at"]
    before.leadership = success(anyone.campaign("some-room", ttl_seconds=300, metadata="desk"))
    last = acquired(alice.acquire("last"))
    released(alice.release("last", last["lease_id"]))
    before.last_token = last["fencing_token"]
    server.kill()
    server.tokens = static_tokens("bob-1")
    server.start()
    return before


def test_everything_acknowledged_survives_a_kill(restarted):
    """All checks in one test, because each test would need its own restart."""
    alice, carol, anyone = restarted.alice, restarted.carol, restarted.anyone
    assert restarted.first_free == 1, "an empty store counts from one"
    assert restarted.lease["fencing_token"] == 1

    observed = success(carol.read_lock("held"))
    assert observed["expires_at"] == restarted.lease["expires_at"]
    assert (observed["metadata"], observed["fencing_token"]) == ("note", restarted.lease["fencing_token"])
    held(carol.acquire("held"))
    success(alice.renew("held", restarted.lease["lease_id"]))
    released(alice.release("held", restarted.lease["lease_id"]))

    session = success(alice.get(f"/sessions/{restarted.session}"))
    assert (session["user_id"], session["lock_count"], session["active"]) == (restarted.user_id, 1, True)
    success(alice.renew("bound", restarted.ephemeral["lease_id"]))
    assert alice.delete(f"/sessions/{restarted.session}").status == 204
    assert success(alice.read_lock("bound"))["status"] == "free"

    assert success(carol.read_lock("listed"))["acl"] == {"acquire": ["user:alice-1"]}
    refused(carol.acquire("listed"), 403, "forbidden")
    assert delayed(carol.acquire("delayed"))["available_at"] == restarted.available_at

    leader = success(anyone.get("/elections/some-room"))["leader"]
    assert (leader["metadata"], leader["term"]) == ("desk", restarted.leadership["leader"]["term"])
    success(anyone.renew_leadership("some-room", restarted.leadership["leader_token"]))

    assert success(carol.read_lock("unused"))["fencing_token"] > restarted.last_token
    assert acquired(carol.acquire(f"new-{uuid.uuid4().hex}"))["fencing_token"] > restarted.last_token

    refused(restarted.bob.get("/locks"), 401, "authentication_failed")
    refused(alice.release("last", ABSENT_LEASE), 404, "lease_not_current")
