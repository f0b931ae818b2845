"""What streams say when nothing happens, when too much is watched, and when what comes next is gone.

In this process and with a short patience, over the very handlers that a server has.
"""

import pytest

import holdfast
from holdfast.client.embedded import MAX_UNREAD_CHUNKS
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
    """(the head, pieces) of one answer."""
    return client._transport.stream(Request(method, path, {"accept": "text/event-stream", **headers}, b""), SECONDS)


def test_a_log_that_is_silent_beats_with_how_far_it_has_come(client):
    with stream(client, "/v1/events?kind=task.*") as (_, pieces):
        assert b": open\n" in next(pieces)
        client.claim_job("somebody-elses", "me")
        while (beat := next(pieces)) == b": beat\nid: 0\n\n":
            pass
        assert beat == b": beat\nid: 1\n\n"


def test_a_lock_that_is_silent_sends_the_barest_comment(client):
    with stream(client, "/locks/quiet/watch") as (_, pieces):
        assert next(pieces).startswith(b'data: {"event":"released"')
        assert next(pieces) == b":\n\n"


def test_an_election_that_is_silent_says_that_it_is_alive(client):
    with stream(client, "/elections/quiet-room-1/watch") as (_, pieces):
        assert next(pieces).startswith(b"event: state\nretry:1000\ndata: {")
        assert next(pieces) == b": keepalive\n\n"


def test_so_many_names_may_be_watched_and_no_more(client):
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


def test_a_look_at_the_head_alone_takes_no_place(client):
    ctx = client._transport._context
    with stream(client, "/v1/events", method="HEAD") as (head, pieces):
        assert head.status == 200
        assert list(pieces) == []
    assert ctx.stream_limits.per_key.total == 0
    assert ctx.hub.size() == 0


def test_retention_in_the_midst_is_the_streams_last_word(client, monkeypatch):
    """The reader has taken the first slice of more than may be ready for it; then the log's beginning goes."""
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
