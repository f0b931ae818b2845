"""OctoStore's watches of locks and elections, frame by frame."""

import json
import time

import pytest

from tests.compat.octostore.expect import instant
from tests.compat.octostore.wire import lock_path
from tests.streams.reading import Stream, StreamEnded

LOCK_HEADERS = {"content-type": "text/event-stream", "cache-control": "no-cache"}


def watch_lock(caller, lock):
    return Stream(caller.port, lock_path(lock, "/watch"), **caller.headers)


def watch_election(caller, election, **headers):
    return Stream(caller.port, f"/elections/{election}/watch", **caller.headers, **headers)


def _frame(stream, seconds):
    """The next frame that is not a comment: on a busy machine some time may pass without a change."""
    while (frame := stream.frame(seconds)) == ":":
        pass
    return frame


def next_document(stream, seconds=10):
    """The document of a lock's frame, which is one line and nothing else."""
    frame = _frame(stream, seconds)
    assert frame.startswith("data: {")
    assert "\n" not in frame
    return json.loads(frame.removeprefix("data: "))


def state(stream, seconds=10):
    """The document of an election's frame, which is three lines in this order."""
    first, second, third = _frame(stream, seconds).split("\n")
    assert (first, second) == ("event: state", "retry:1000")
    assert third.startswith("data: {")
    return json.loads(third.removeprefix("data: "))


# -- locks -------------------------------------------------------------------------------------------------------


def test_a_lock_watch_sends_the_state_and_then_every_change(alice, lock):
    with watch_lock(alice, lock) as stream:
        assert stream.status == 200
        assert stream.headers.items() >= LOCK_HEADERS.items()
        assert list(next_document(stream)) == ["event", "lock_name", "observed_at"]
        granted = alice.acquire(lock, metadata="m").json
        observed = next_document(stream)
        assert list(observed) == ["event", "lock_name", "fencing_token", "expires_at", "observed_at"]
        assert (observed["event"], observed["lock_name"]) == ("acquired", lock)
        assert (observed["fencing_token"], observed["expires_at"]) == (granted["fencing_token"], granted["expires_at"])
        renewed = alice.renew(lock, granted["lease_id"], ttl_seconds=100).json
        observed = next_document(stream)
        assert list(observed) == ["event", "lock_name", "fencing_token", "expires_at", "observed_at"]
        assert (observed["event"], observed["fencing_token"]) == ("renewed", granted["fencing_token"])
        assert observed["expires_at"] == renewed["expires_at"]
        alice.acquire(lock, ttl_seconds=200)
        assert next_document(stream)["event"] == "renewed", "taking again what one has keeps it"
        alice.release(lock, granted["lease_id"])
        observed = next_document(stream)
        assert list(observed) == ["event", "lock_name", "observed_at"]
        assert observed["event"] == "released"
        instant(observed["observed_at"])


def test_the_first_frame_of_a_held_lock_is_acquired(alice, bob, lock):
    granted = alice.acquire(lock).json
    with watch_lock(bob, lock) as stream:
        observed = next_document(stream)
        assert (observed["event"], observed["fencing_token"]) == ("acquired", granted["fencing_token"])


def test_a_lock_watch_sends_an_expiry(alice, lock):
    alice.acquire(lock, ttl_seconds=1)
    with watch_lock(alice, lock) as stream:
        assert next_document(stream)["event"] == "acquired"
        observed = next_document(stream, 5)
        assert (observed["event"], list(observed)) == ("expired", ["event", "lock_name", "observed_at"])


def test_a_lock_in_its_delay_is_sent_as_released(alice, lock):
    granted = alice.acquire(lock, lock_delay_seconds=30).json
    alice.release(lock, granted["lease_id"])
    with watch_lock(alice, lock) as stream:
        assert next_document(stream)["event"] == "released"


def test_a_lock_watch_sends_only_changes_of_the_holder(alice, lock):
    granted = alice.acquire(lock).json
    with watch_lock(alice, lock) as stream:
        next_document(stream)
        assert alice.set_acl(lock, f"user:{alice.name}").status == 200
        alice.release(lock, granted["lease_id"])
        assert next_document(stream)["event"] == "released"


def test_a_job_of_the_same_name_is_the_same_lease(alice, lock):
    with watch_lock(alice, lock) as stream:
        next_document(stream)
        lease = alice.post(f"/v1/jobs/{lock}/claim", {"owner": "me"}).json
        assert (next_document(stream)["event"], lease["status"]) == ("acquired", "claimed")


def test_frames_are_ascii(alice, lock):
    name = f"schloß-{lock}"
    with watch_lock(alice, name) as stream:
        assert next_document(stream)["lock_name"] == name


def test_a_lock_watch_ignores_last_event_id(alice, lock):
    with watch_lock(alice.with_headers(Last_Event_ID="7"), lock) as stream:
        assert next_document(stream)["event"] == "released"


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [("__election/some-room", 403, "forbidden"), ("a//b", 400, "invalid_lock_name"), ("", 400, "invalid_lock_name")],
)
def test_an_invalid_name_is_refused_instead_of_a_stream(alice, name, status, code):
    with watch_lock(alice, name) as stream:
        assert (stream.status, stream.body()["code"]) == (status, code)


def test_a_lock_watch_needs_a_token(anyone, lock):
    with watch_lock(anyone, lock) as stream:
        assert (stream.status, stream.body()["code"]) == (401, "authentication_required")


# -- elections ---------------------------------------------------------------------------------------------------


def test_an_election_watch_sends_the_state_and_then_every_change(anyone, election):
    with watch_election(anyone, election) as stream:
        assert stream.status == 200
        assert stream.headers.items() >= LOCK_HEADERS.items()
        observed = state(stream)
        assert list(observed) == ["schema_version", "election_id", "status", "leader", "retry_after_ms", "observed_at"]
        assert observed | {"observed_at": ""} == {
            "schema_version": 1, "election_id": election, "status": "vacant", "leader": None, "retry_after_ms": 0,
            "observed_at": "",
        }  # fmt: skip
        led = anyone.campaign(election, "ann", ttl_seconds=60, metadata="m").json
        observed = state(stream)
        assert (observed["status"], observed["leader"]) == ("leader", led["leader"])
        assert list(observed["leader"]) == ["candidate_id", "metadata", "term", "expires_at"]
        assert 55_000 < observed["retry_after_ms"] <= 60_000
        renewed = anyone.renew_leadership(election, led["leader_token"], ttl_seconds=120).json
        assert state(stream)["leader"] == renewed["leader"]
        anyone.resign(election, led["leader_token"])
        assert (state(stream)["status"], election) == ("vacant", election)


def test_a_leader_without_metadata_has_none_in_the_frame(anyone, election):
    anyone.campaign(election, "ann")
    with watch_election(anyone, election) as stream:
        assert list(state(stream)["leader"]) == ["candidate_id", "term", "expires_at"]


def test_a_watch_of_an_invalid_election_id_is_refused(anyone):
    with watch_election(anyone, "short") as stream:
        assert (stream.status, stream.body()["code"]) == (400, "invalid_input")


def test_watches_are_limited_by_client_and_in_total(strict_server, election):
    """Two for each address and three in all: the address is asked first."""
    anyone = strict_server.anyone
    first = [watch_election(anyone, election, CF_Connecting_IP="192.0.2.1") for _ in range(2)]
    third = watch_election(anyone, election, CF_Connecting_IP="192.0.2.1")
    assert (third.status, third.headers["retry-after"], third.body()["retry_after_ms"]) == (429, "30", 30_000)
    other = watch_election(anyone, election, CF_Connecting_IP="192.0.2.2")
    assert other.status == 200
    full = watch_election(anyone, election, CF_Connecting_IP="192.0.2.3")
    assert (full.status, full.headers["retry-after"], full.body()["code"]) == (429, "1", "rate_limited")
    for stream in (*first, third, other, full):
        stream.close()
    deadline = time.monotonic() + 10
    while (again := watch_election(anyone, election, CF_Connecting_IP="192.0.2.1")).status != 200:
        again.close()
        assert time.monotonic() < deadline, "places were not given back"
    again.close()


def test_an_election_watch_ends_when_its_time_is_over(strict_server, election):
    with watch_election(strict_server.anyone, election, CF_Connecting_IP="192.0.2.9") as stream:
        state(stream)
        begun = time.monotonic()
        with pytest.raises(StreamEnded):
            stream.frame(10)
        assert stream.was_finished
        assert 1 < time.monotonic() - begun < 8
