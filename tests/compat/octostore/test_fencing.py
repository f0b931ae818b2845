"""One counter for all locks and all elections; it goes up by one for each new lease and never back."""

from tests.compat.octostore.expect import ABSENT_LEASE, acquired, delayed, held, refused, released, success


def next_token(caller):
    """What a free lock shows: the value the next lease anywhere will get."""
    return success(caller.look("never-taken"))["fencing_token"]


def test_a_free_lock_shows_the_next_token(alice, lock):
    token = next_token(alice)
    assert acquired(alice.acquire(lock))["fencing_token"] == token
    assert next_token(alice) == token + 1


def test_a_held_lock_shows_its_own_token(alice, bob, lock):
    lease = acquired(alice.acquire(lock))
    acquired(bob.acquire(f"{lock}.other"))
    assert success(bob.look(lock))["fencing_token"] == lease["fencing_token"]


def test_a_cooling_lock_shows_the_next_token(alice, lock):
    lease = acquired(alice.acquire(lock, lock_delay_seconds=10))
    released(alice.release(lock, lease["lease_id"]))
    assert success(alice.look(lock))["fencing_token"] == lease["fencing_token"] + 1


def test_locks_and_elections_draw_from_one_counter(alice, anyone, lock, room):
    first = acquired(alice.acquire(f"{lock}.a"))["fencing_token"]
    term = success(anyone.campaign(room))["leader"]["term"]
    last = acquired(alice.acquire(f"{lock}.b"))["fencing_token"]
    assert [term, last] == [first + 1, first + 2]


def test_renewing_and_acquiring_again_draw_nothing(alice, anyone, lock, room):
    lease = acquired(alice.acquire(lock))
    leadership = success(anyone.campaign(room))
    token = next_token(alice)
    success(alice.renew(lock, lease["lease_id"]))
    acquired(alice.acquire(lock))
    success(anyone.renew_leadership(room, leadership["leader_token"]))
    assert next_token(alice) == token


def test_refused_attempts_draw_nothing(alice, bob, anyone, lock, room):
    acquired(alice.acquire(lock, acl={"acquire": [f"user:{alice.name}", f"user:{bob.name}"]}))
    cooling = acquired(alice.acquire(f"{lock}.cooling", lock_delay_seconds=10))
    released(alice.release(f"{lock}.cooling", cooling["lease_id"]))
    success(anyone.campaign(room))
    token = next_token(alice)
    held(bob.acquire(lock))
    delayed(bob.acquire(f"{lock}.cooling"))
    refused(bob.acquire(lock, acl={"acquire": [f"user:{bob.name}"]}), 409, "conflict")
    refused(bob.acquire(f"{lock}.new", acl={"acquire": [f"user:{alice.name}"]}), 403, "forbidden")
    refused(bob.acquire(f"{lock}.new", ttl_seconds=0), 400, "invalid_ttl")
    refused(bob.acquire(f"{lock}.new", session_id=ABSENT_LEASE), 404, "not_found", "Session not found")
    assert success(anyone.campaign(room))["status"] == "follower"
    assert next_token(alice) == token


def test_tokens_keep_growing_over_release_and_resignation(alice, anyone, lock, room):
    tokens = []
    for _ in range(3):
        lease = acquired(alice.acquire(lock))
        released(alice.release(lock, lease["lease_id"]))
        leadership = success(anyone.campaign(room))
        success(anyone.resign(room, leadership["leader_token"]))
        tokens += [lease["fencing_token"], leadership["leader"]["term"]]
    assert tokens == list(range(tokens[0], tokens[0] + 6))
