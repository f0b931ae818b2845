"""One token counter for all locks and elections: it increases by one for each new lease."""

from tests.compat.octostore.expect import ABSENT_LEASE, acquired, delayed, held, refused, released, success


def next_token(caller):
    """What a free lock shows: the value the next lease anywhere will get."""
    return success(caller.read_lock("never-taken"))["fencing_token"]


def test_a_free_lock_has_the_next_token(alice, lock):
    token = next_token(alice)
    assert acquired(alice.acquire(lock))["fencing_token"] == token
    assert next_token(alice) == token + 1


def test_a_held_lock_has_its_token(alice, bob, lock):
    lease = acquired(alice.acquire(lock))
    acquired(bob.acquire(f"{lock}.other"))
    assert success(bob.read_lock(lock))["fencing_token"] == lease["fencing_token"]


def test_a_lock_in_its_delay_has_the_next_token(alice, lock):
    lease = acquired(alice.acquire(lock, lock_delay_seconds=10))
    released(alice.release(lock, lease["lease_id"]))
    assert success(alice.read_lock(lock))["fencing_token"] == lease["fencing_token"] + 1


def test_locks_and_elections_share_one_token_counter(alice, anyone, lock, election):
    first = acquired(alice.acquire(f"{lock}.a"))["fencing_token"]
    term = success(anyone.campaign(election))["leader"]["term"]
    last = acquired(alice.acquire(f"{lock}.b"))["fencing_token"]
    assert [term, last] == [first + 1, first + 2]


def test_renewing_and_acquiring_again_use_no_token(alice, anyone, lock, election):
    lease = acquired(alice.acquire(lock))
    leadership = success(anyone.campaign(election))
    token = next_token(alice)
    success(alice.renew(lock, lease["lease_id"]))
    acquired(alice.acquire(lock))
    success(anyone.renew_leadership(election, leadership["leader_token"]))
    assert next_token(alice) == token


def test_refused_requests_use_no_token(alice, bob, anyone, lock, election):
    acquired(alice.acquire(lock, acl={"acquire": [f"user:{alice.name}", f"user:{bob.name}"]}))
    delayed_name = acquired(alice.acquire(f"{lock}.cooling", lock_delay_seconds=10))
    released(alice.release(f"{lock}.cooling", delayed_name["lease_id"]))
    success(anyone.campaign(election))
    token = next_token(alice)
    held(bob.acquire(lock))
    delayed(bob.acquire(f"{lock}.cooling"))
    refused(bob.acquire(lock, acl={"acquire": [f"user:{bob.name}"]}), 409, "conflict")
    refused(bob.acquire(f"{lock}.new", acl={"acquire": [f"user:{alice.name}"]}), 403, "forbidden")
    refused(bob.acquire(f"{lock}.new", ttl_seconds=0), 400, "invalid_ttl")
    refused(bob.acquire(f"{lock}.new", session_id=ABSENT_LEASE), 404, "not_found", "Session not found")
    assert success(anyone.campaign(election))["status"] == "follower"
    assert next_token(alice) == token


def test_tokens_keep_growing_over_release_and_resignation(alice, anyone, lock, election):
    tokens = []
    for _ in range(3):
        lease = acquired(alice.acquire(lock))
        released(alice.release(lock, lease["lease_id"]))
        leadership = success(anyone.campaign(election))
        success(anyone.resign(election, leadership["leader_token"]))
        tokens += [lease["fencing_token"], leadership["leader"]["term"]]
    assert tokens == list(range(tokens[0], tokens[0] + 6))
