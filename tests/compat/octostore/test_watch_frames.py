"""OctoStore's two watches, frame by frame, over a bare socket."""

import json
import time

import pytest

from tests.compat.octostore.expect import instant
from tests.compat.octostore.wire import lock_path
from tests.streams.reading import Ended, Stream

LOCK_HEADERS = {"content-type": "text/event-stream", "cache-control": "no-cache"}


def watch_lock(caller, lock):
    return Stream(caller.port, lock_path(lock, "/watch"), **caller.headers)


def watch_room(caller, room, **headers):
    return Stream(caller.port, f"/elections/{room}/watch", **caller.headers, **headers)


def told(stream, seconds=10):
    """The document of a lock's frame, which is one line and nothing else."""
    frame = stream.frame(seconds)
    assert frame.startswith("data: {")
    assert "\n" not in frame
    return json.loads(frame.removeprefix("data: "))


def state(stream, seconds=10):
    """The document of an election's frame, which is three lines in this order."""
    first, second, third = stream.frame(seconds).split("\n")
    assert (first, second) == ("event: state", "retry:1000")
    assert third.startswith("data: {")
    return json.loads(third.removeprefix("data: "))


# -- locks -------------------------------------------------------------------------------------------------------


def test_a_lock_watch_begins_with_how_things_stand_and_tells_every_change(alice, lock):
    with watch_lock(alice, lock) as stream:
        assert stream.status == 200
        assert stream.headers.items() >= LOCK_HEADERS.items()
        assert list(told(stream)) == ["event", "lock_name", "observed_at"]
        granted = alice.acquire(lock, metadata="m").json
        seen = told(stream)
        assert list(seen) == ["event", "lock_name", "fencing_token", "expires_at", "observed_at"]
        assert (seen["event"], seen["lock_name"]) == ("acquired", lock)
        assert (seen["fencing_token"], seen["expires_at"]) == (granted["fencing_token"], granted["expires_at"])
        renewed = alice.renew(lock, granted["lease_id"], ttl_seconds=100).json
        seen = told(stream)
        assert list(seen) == ["event", "lock_name", "fencing_token", "expires_at", "observed_at"]
        assert (seen["event"], seen["fencing_token"]) == ("renewed", granted["fencing_token"])
        assert seen["expires_at"] == renewed["expires_at"]
        alice.acquire(lock, ttl_seconds=200)
        assert told(stream)["event"] == "renewed", "taking again what one has keeps it"
        alice.release(lock, granted["lease_id"])
        seen = told(stream)
        assert list(seen) == ["event", "lock_name", "observed_at"]
        assert seen["event"] == "released"
        instant(seen["observed_at"])


def test_the_first_frame_of_a_held_lock_says_acquired(alice, bob, lock):
    granted = alice.acquire(lock).json
    with watch_lock(bob, lock) as stream:
        seen = told(stream)
        assert (seen["event"], seen["fencing_token"]) == ("acquired", granted["fencing_token"])


def test_a_lock_that_runs_out_is_told(alice, lock):
    alice.acquire(lock, ttl_seconds=1)
    with watch_lock(alice, lock) as stream:
        assert told(stream)["event"] == "acquired"
        seen = told(stream, 5)
        assert (seen["event"], list(seen)) == ("expired", ["event", "lock_name", "observed_at"])


def test_a_lock_that_rests_is_shown_as_released(alice, lock):
    granted = alice.acquire(lock, lock_delay_seconds=30).json
    alice.release(lock, granted["lease_id"])
    with watch_lock(alice, lock) as stream:
        assert told(stream)["event"] == "released"


def test_what_is_no_change_of_holder_is_not_told(alice, lock):
    granted = alice.acquire(lock).json
    with watch_lock(alice, lock) as stream:
        told(stream)
        assert alice.set_acl(lock, f"user:{alice.name}").status == 200
        alice.release(lock, granted["lease_id"])
        assert told(stream)["event"] == "released"


def test_a_job_of_the_same_name_is_the_same_lease(alice, lock):
    with watch_lock(alice, lock) as stream:
        told(stream)
        lease = alice.post(f"/v1/jobs/{lock}/claim", {"owner": "me"}).json
        assert (told(stream)["event"], lease["status"]) == ("acquired", "claimed")


def test_letters_of_every_script_arrive_in_plain_ascii(alice, lock):
    name = f"schloß-{lock}"
    with watch_lock(alice, name) as stream:
        assert told(stream)["lock_name"] == name


def test_a_lock_watch_ignores_where_somebody_stood(alice, lock):
    with watch_lock(alice.saying(Last_Event_ID="7"), lock) as stream:
        assert told(stream)["event"] == "released"


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [("__election/some-room", 403, "forbidden"), ("a//b", 400, "invalid_lock_name"), ("", 400, "invalid_lock_name")],
)
def test_what_cannot_be_watched_is_refused_before_the_stream(alice, name, status, code):
    with watch_lock(alice, name) as stream:
        assert (stream.status, stream.body()["code"]) == (status, code)


def test_a_lock_watch_needs_a_token(anyone, lock):
    with watch_lock(anyone, lock) as stream:
        assert (stream.status, stream.body()["code"]) == (401, "authentication_required")


# -- elections ---------------------------------------------------------------------------------------------------


def test_an_election_watch_begins_with_how_things_stand_and_tells_every_change(anyone, room):
    with watch_room(anyone, room) as stream:
        assert stream.status == 200
        assert stream.headers.items() >= LOCK_HEADERS.items()
        seen = state(stream)
        assert list(seen) == ["schema_version", "election_id", "status", "leader", "retry_after_ms", "observed_at"]
        assert seen | {"observed_at": ""} == {
            "schema_version": 1, "election_id": room, "status": "vacant", "leader": None, "retry_after_ms": 0,
            "observed_at": "",
        }  # fmt: skip
        led = anyone.campaign(room, "ann", ttl_seconds=60, metadata="m").json
        seen = state(stream)
        assert (seen["status"], seen["leader"]) == ("leader", led["leader"])
        assert list(seen["leader"]) == ["candidate_id", "metadata", "term", "expires_at"]
        assert 55_000 < seen["retry_after_ms"] <= 60_000
        renewed = anyone.renew_leadership(room, led["leader_token"], ttl_seconds=120).json
        assert state(stream)["leader"] == renewed["leader"]
        anyone.resign(room, led["leader_token"])
        assert (state(stream)["status"], room) == ("vacant", room)


def test_a_leader_without_metadata_is_shown_without(anyone, room):
    anyone.campaign(room, "ann")
    with watch_room(anyone, room) as stream:
        assert list(state(stream)["leader"]) == ["candidate_id", "term", "expires_at"]


def test_a_room_that_cannot_be_is_refused(anyone):
    with watch_room(anyone, "short") as stream:
        assert (stream.status, stream.body()["code"]) == (400, "invalid_input")


def test_each_client_has_so_many_watches_and_everybody_together_too(strict_server, room):
    """Two for each address and three in all: the address is asked first."""
    anyone = strict_server.anyone
    first = [watch_room(anyone, room, CF_Connecting_IP="192.0.2.1") for _ in range(2)]
    third = watch_room(anyone, room, CF_Connecting_IP="192.0.2.1")
    assert (third.status, third.headers["retry-after"], third.body()["retry_after_ms"]) == (429, "30", 30_000)
    other = watch_room(anyone, room, CF_Connecting_IP="192.0.2.2")
    assert other.status == 200
    full = watch_room(anyone, room, CF_Connecting_IP="192.0.2.3")
    assert (full.status, full.headers["retry-after"], full.body()["code"]) == (429, "1", "rate_limited")
    for stream in (*first, third, other, full):
        stream.close()
    deadline = time.monotonic() + 10
    while (again := watch_room(anyone, room, CF_Connecting_IP="192.0.2.1")).status != 200:
        again.close()
        assert time.monotonic() < deadline, "places were not given back"
    again.close()


def test_an_election_watch_ends_when_its_time_is_over(strict_server, room):
    with watch_room(strict_server.anyone, room, CF_Connecting_IP="192.0.2.9") as stream:
        state(stream)
        begun = time.monotonic()
        with pytest.raises(Ended):
            stream.frame(10)
        assert stream.was_finished
        assert 1 < time.monotonic() - begun < 8
