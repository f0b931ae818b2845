"""`follow`: every event once and in order, over lost connections and killed servers, in all three kinds of client."""

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice

import pytest

import holdfast
from holdfast.client.asgi_request import MAX_UNREAD_CHUNKS
from holdfast.client.embedded import CLOSE_SECONDS
from holdfast.client.errors import AuthError, CursorTooOld, HoldfastError, Unreachable
from holdfast.client.event_stream import StreamState
from holdfast.client.sse import FrameParser
from tests.client.ways import KEY, url_of
from tests.compat.octostore.server import free_port

SECONDS = 20
RESET = b'event: reset\ndata: {"error":"cursor_too_old","message":"gone","oldest":9}\n\n'


@pytest.fixture(params=["http", "async", "embedded"])
def follow(request, sqlite_server, tmp_path):
    """Returns (a client that writes, a function that follows and returns the first events)."""
    if request.param == "embedded":
        client = holdfast.open(tmp_path / "own.db")
    else:
        client = holdfast.Client(url_of(sqlite_server), KEY)

    def first(count, **wants):
        if request.param == "async":
            return asyncio.run(collected(sqlite_server, count, wants))
        return list(islice(client.follow(**wants), count))

    yield client, first
    client.close()


async def collected(server, count, wants):
    found = []
    async with holdfast.AsyncClient(url_of(server), KEY) as client:
        async for event in client.follow(**wants):
            found.append(event)
            if len(found) == count:
                return found
    return found


def last(client):
    return client.list_events(request_id="-", limit=1)["nextCursor"]


def test_past_and_new_events_are_typed(follow, name):
    client, first = follow
    after = last(client)
    lease = client.claim_job(name, "me", None)
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(lambda: time.sleep(0.3) or client.release_job(name, lease["lease_id"]))
        claimed, released = first(2, after=after, subject=f"lease:{name}")
        later.result(SECONDS)
    assert (claimed.kind, released.kind) == ("lease.claimed", "lease.released")
    assert (claimed.subject, claimed.version, released.version) == (f"lease:{name}", 1, 2)
    assert claimed.seq > after
    assert abs((datetime.now(UTC) - released.at).total_seconds()) < 60
    assert claimed.data["owner"] == "me"
    assert first(1, after=after, kind="lease.r*")[0].kind == "lease.released"


def test_without_a_cursor_only_new_events_are_followed(follow, name):
    client, first = follow
    client.claim_job(f"before-{name}", "me", None)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(first, 1, subject="lease:*")
        deadline = time.monotonic() + SECONDS
        number = 0
        while not found.done():
            client.claim_job(f"{name}-{number}", "me", None)
            number += 1
            time.sleep(0.05)
            assert time.monotonic() < deadline
        assert found.result()[0].subject.startswith(f"lease:{name}")


def test_closing_the_client_ends_the_iteration(sqlite_server, tmp_path, name):
    for client in (holdfast.Client(url_of(sqlite_server), KEY), holdfast.open(tmp_path / "x.db")):
        received = []
        events = client.follow(subject=f"lease:{name}")  # leases of earlier tests may expire meanwhile
        thread = threading.Thread(target=received.extend, args=[events], daemon=True)
        thread.start()
        time.sleep(0.5)
        client.close()
        thread.join(SECONDS)
        assert (thread.is_alive(), received) == (False, [])


def test_closing_an_async_client_ends_the_iteration(sqlite_server, name):
    async def scenario():
        client = holdfast.AsyncClient(url_of(sqlite_server), KEY)

        async def listen():
            return [event async for event in client.follow(subject=f"lease:{name}")]

        listening = asyncio.ensure_future(listen())
        await asyncio.sleep(0.5)
        await client.close()
        return await asyncio.wait_for(listening, SECONDS)

    assert asyncio.run(scenario()) == []


def test_closing_the_client_while_it_connects_ends_the_iteration(sqlite_server, monkeypatch):
    client = holdfast.Client(f"http://localhost:{sqlite_server.port}", KEY)
    look_up, connecting, closed = socket.getaddrinfo, threading.Event(), threading.Event()

    def look_up_late(*arguments, **more):
        if threading.current_thread() is thread:
            connecting.set()
            closed.wait(SECONDS)
        return look_up(*arguments, **more)

    thread = threading.Thread(target=list, args=[client.follow()], daemon=True)
    monkeypatch.setattr(socket, "getaddrinfo", look_up_late)
    thread.start()
    assert connecting.wait(SECONDS)
    client.close()
    closed.set()
    thread.join(3)
    assert not thread.is_alive()


def test_closing_an_async_client_while_it_connects_ends_the_iteration(sqlite_server, monkeypatch):
    async def scenario():
        loop = asyncio.get_running_loop()
        look_up, connecting, closed = loop.getaddrinfo, asyncio.Event(), asyncio.Event()

        async def look_up_late(*arguments, **more):
            connecting.set()
            await closed.wait()
            return await look_up(*arguments, **more)

        monkeypatch.setattr(loop, "getaddrinfo", look_up_late)
        client = holdfast.AsyncClient(f"http://localhost:{sqlite_server.port}", KEY)

        async def listen():
            return [event async for event in client.follow()]

        listening = asyncio.ensure_future(listen())
        await asyncio.wait_for(connecting.wait(), SECONDS)
        await client.close()
        closed.set()
        return await asyncio.wait_for(listening, 3)

    assert asyncio.run(scenario()) == []


def test_a_watch_yields_every_change(sqlite_server, name):
    with holdfast.Client(url_of(sqlite_server), KEY) as client:
        watch = client.watch_lock(name)
        assert next(watch)["event"] == "released"
        client.acquire_lock(name)
        assert next(watch)["event"] == "acquired"
        election = client.watch_election(client.create_election()["election_id"])
        assert next(election)["status"] == "vacant"


def test_following_continues_without_a_gap_after_the_server_was_killed(new_server, tmp_path, name):
    server = new_server(f"sqlite:///{tmp_path}/x.db").start()
    with holdfast.Client(url_of(server), KEY) as client, ThreadPoolExecutor(1) as pool:
        after = last(client)
        follower = pool.submit(lambda: [event.seq for event in islice(client.follow(after), 4)])
        lease = client.claim_job(name, "me", None)
        client.release_job(name, lease["lease_id"])
        server.kill()
        server.start()
        lease = client.claim_job(name, "me", None)
        client.release_job(name, lease["lease_id"])
        assert follower.result(60) == list(range(after + 1, after + 5))


def test_errors_that_retrying_does_not_fix_are_raised(sqlite_server):
    with holdfast.Client(url_of(sqlite_server), "a-key-that-this-server-never-saw") as client, pytest.raises(AuthError):
        next(client.follow())
    with (
        holdfast.Client(f"http://127.0.0.1:{free_port()}", KEY, deadline=0.5) as client,
        pytest.raises(Unreachable),
    ):
        next(client.follow())


def test_a_cursor_that_is_too_old_raises(tmp_path, name):
    """Before the stream by a refusal, during the stream by its last frame."""
    with holdfast.open(tmp_path / "x.db") as client:
        for _ in range(3):
            lease = client.claim_job(name, "me", None)
            client.release_job(name, lease["lease_id"])
        client._transport._engine.store.forget_events("default", 4)
        with pytest.raises(CursorTooOld) as caught:
            next(client.follow(after=1))
        assert caught.value.document["oldest"] == 5
        assert next(client.follow(after=4)).seq == 5
    stream = StreamState("list_events", {}, deadline=1)
    with pytest.raises(CursorTooOld) as caught:
        list(stream.feed(RESET))
    assert caught.value.document["oldest"] == 9


def test_events_before_a_reset_are_yielded_even_in_the_same_chunk():
    found = StreamState("list_events", {}, deadline=1).feed(b"id: 7\ndata: 1\n\nid: 8\ndata: 2\n\n" + RESET)
    assert [next(found).data, next(found).data] == ["1", "2"]
    with pytest.raises(CursorTooOld):
        next(found)


def test_a_new_connection_does_not_continue_half_a_frame_of_the_old_one():
    stream = StreamState("list_events", {}, deadline=1)
    assert [frame.data for frame in stream.feed(b"id: 1\ndata: one\n\nid: 2\ndata: tw")] == ["one"]
    assert stream.request().headers["last-event-id"] == "1"
    assert [frame.data for frame in stream.feed(b"id: 2\ndata: two\n\n")] == ["two"]


def test_a_new_connection_continues_after_the_last_frame_that_was_taken():
    stream = StreamState("list_events", {}, deadline=1)
    frames = stream.feed(b"id: 1\ndata: one\n\nid: 2\ndata: two\n\nid: 3\ndata: three\n\n")
    assert next(frames).data == "one"
    assert stream.request().headers["last-event-id"] == "1"


def test_closing_an_embedded_client_ends_a_reader_with_unread_events(tmp_path, name):
    """The reader has read one event; more chunks than may be buffered are ready when the client is closed."""
    client = holdfast.open(tmp_path / "x.db")
    events = client.follow(after=0, subject=f"lease:{name}*")
    for number in range(MAX_UNREAD_CHUNKS + 10):
        client.claim_job(f"{name}-{number}", "me", None)
        if number == 0:
            assert next(events).subject == f"lease:{name}-0"
        time.sleep(0.002)  # so that each is a separate chunk
    begun = time.monotonic()
    client.close()
    assert time.monotonic() - begun < CLOSE_SECONDS
    seen = [event.seq for event in events]
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_frames_do_not_depend_on_how_the_stream_is_split(size):
    text = b": hello\nretry: 5\nid: 1\n\ndata: a\r\ndata: b\r\n\r\nevent: x\rdata:c\rid: 2\r\r:\n\nid\ndata\n\n"
    frames, found = FrameParser(), []
    for offset in range(0, len(text), size):
        found += frames.feed(text[offset : offset + size])
    assert [(frame.event, frame.data, frame.id, frame.retry) for frame in found] == [
        ("message", None, "1", 5),
        ("message", "a\nb", None, None),
        ("x", "c", "2", None),
        ("message", None, None, None),
        ("message", "", "", None),
    ]


def test_an_endless_frame_is_refused():
    frames = FrameParser(max_bytes=100)
    with pytest.raises(HoldfastError, match="exceeded 100 bytes"):
        frames.feed(b"data: " + b"x" * 200)
