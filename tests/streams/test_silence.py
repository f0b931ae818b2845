"""Heartbeats of silent streams, the limit of watched names, and the last frame after retention.

The handlers of the server run in this process, with short intervals.
"""

import pytest

import holdfast
from holdfast.client.asgi_request import MAX_UNREAD_CHUNKS
from holdfast.client.request import Request
from holdfast.transport.http.streams import hub

SECONDS = 10.0


@pytest.fixture
def client(monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(hub, "TICK_SECONDS", 0.02)
    with holdfast.open(tmp_path / "x.db") as client:
        yield client


def stream(client, path, method="GET", **headers):
    """(head, parts) of one response."""
    return client._transport.stream(Request(method, path, {"accept": "text/event-stream", **headers}, b""), SECONDS)


def test_a_silent_event_stream_sends_heartbeats_with_the_cursor(client):
    with stream(client, "/v1/events?kind=task.*") as (_, pieces):
        assert b": open\n" in next(pieces)
        client.claim_job("somebody-elses", "me")
        while (beat := next(pieces)) == b": beat\nid: 0\n\n":
            pass
        assert beat == b": beat\nid: 1\n\n"


def test_a_silent_lock_watch_sends_an_empty_comment(client):
    with stream(client, "/locks/quiet/watch") as (_, pieces):
        assert next(pieces).startswith(b'data: {"event":"released"')
        assert next(pieces) == b":\n\n"


def test_a_silent_election_watch_sends_keepalive_comments(client):
    with stream(client, "/elections/quiet-room-1/watch") as (_, pieces):
        assert next(pieces).startswith(b"event: state\nretry:1000\ndata: {")
        assert next(pieces) == b": keepalive\n\n"


def test_the_number_of_watched_names_is_limited(client):
    client._transport._context.stream_limits.watched_names._limit = 2
    with stream(client, "/locks/one/watch") as (one, _), stream(client, "/elections/quiet-room-2/watch") as (two, _):
        assert (one.status, two.status) == (200, 200)
        with stream(client, "/locks/one/watch") as (again, _):
            assert again.status == 200, "a name that is watched already may be watched by anybody"
        for path in ("/locks/three/watch", "/elections/quiet-room-3/watch"):
            with stream(client, path) as (full, _):
                refusal = full.document()
                assert (full.status, refusal["code"]) == (409, "capacity_exceeded")
                assert (refusal["retry_after_ms"], full.headers["retry-after"]) == (1000, "1")


def test_a_head_request_does_not_count_as_a_stream(client):
    ctx = client._transport._context
    with stream(client, "/v1/events", method="HEAD") as (head, pieces):
        assert head.status == 200
        assert list(pieces) == []
    assert ctx.stream_limits.per_key.total == 0
    assert ctx.hub.size() == 0


def test_the_last_frame_reports_events_removed_by_retention(client, monkeypatch):
    """The reader has the first slice when retention removes the next events."""
    monkeypatch.setattr(hub, "SLICE_EVENTS", 2)
    for number in range(4 * MAX_UNREAD_CHUNKS):
        client.claim_job(f"job-{number}", "me")
    with stream(client, "/v1/events?after=0") as (_, pieces):
        said = next(pieces)
        client._transport._engine.store.forget_events("default", 4 * MAX_UNREAD_CHUNKS - 1)
        said += b"".join(pieces)
    *_, last, nothing = said.split(b"\n\n")
    assert nothing == b""
    assert last.startswith(b'event: reset\ndata: {"error":"cursor_too_old"')
    assert b'"oldest":%d' % (4 * MAX_UNREAD_CHUNKS) in last
    assert b"\nid:" not in last
