"""The hub without a server, on every store: joins, slow readers, retention and heartbeats.

The buffer is tiny, so that followers fall behind it and catch up all the time.
"""

import asyncio
import random
import threading
from contextlib import aclosing
from functools import partial

import pytest

from holdfast.core.errors import CursorTooOld, StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.event_filter import EventFilter
from holdfast.core.page import record_size
from holdfast.engine.engine import Engine
from holdfast.transport.http.streams import feed, hub
from holdfast.transport.http.streams.feed import Feed
from holdfast.transport.http.streams.follower import MAX_EVENTS, Follower, RenderedEvent
from holdfast.transport.http.streams.hub import Hub
from tests.proof_size import sized
from tests.support import ACCOUNT, STORES, Futures, claim, heartbeat, make_store, stop_in_time, transact

NAMES = 7
EVENTS = sized(200, 5_000)
FOLLOWERS = sized(12, 60)
SECONDS = sized(60, 1_200)
"""After this a scenario hangs. At full size one takes a minute of processor time, and several run at once."""
LARGEST = 1_500
"""More than any frame in these tests."""


@pytest.fixture(params=STORES)
def engine(request, tmp_path):
    def url():
        return request.getfixturevalue("new_postgres_database")()

    store = make_store(request.param, tmp_path, url)
    engine = Engine(store)
    engine.start()
    yield engine
    stop_in_time(engine, 20)
    store.close()


@pytest.fixture
def small_buffers(monkeypatch):
    """A buffer and pages of a few events, read in smaller parts, and short pauses."""
    monkeypatch.setattr(feed, "PAGE", 5)
    monkeypatch.setattr(feed, "PART_PAUSE", 0.0)
    monkeypatch.setattr(hub, "PART", 2)
    monkeypatch.setattr(hub, "SLICE_EVENTS", 5)
    monkeypatch.setattr(feed, "SLICE_EVENTS", 3)
    monkeypatch.setattr(feed, "BUFFER_EVENTS", 8)
    monkeypatch.setattr(feed, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(feed, "FOLLOWERS_AT_ONCE", 2)


def make_hub(engine, after_read=lambda: None):
    """A hub as the server creates it; `after_read` is called between each read and its use."""

    async def query_store(question):
        found = await asyncio.get_running_loop().run_in_executor(None, engine.read, question)
        await asyncio.get_running_loop().run_in_executor(None, after_read)
        return found

    return Hub(engine.change_signal, query_store, query_store, "test", engine.registry)


def write(engine, count, name="job-0", at_once=4):
    """Write `count` events of one name, a few in each transaction."""
    engine.call(claim(name, "l1"))
    sink = Futures()
    for begun in range(1, count, at_once):
        sent = [sink.send(engine, heartbeat(name, "l1")) for _ in range(min(at_once, count - begun))]
        for _, future in sent:
            future.result(SECONDS)


def log(engine, event_filter=None, after=0):
    events = engine.read(lambda reader: reader.events(ACCOUNT, 0, 1_000_000))
    return [event.seq for event in events if event.seq > after and (event_filter or EventFilter()).matches(event)]


def end(engine):
    return engine.read(lambda reader: reader.log_bounds(ACCOUNT))[1]


async def read(hub, after, event_filter=None, *, wait_for, pause=lambda: 0.0):
    """Follow from a cursor to the end of the log: (the events, the last cursor)."""
    follower = Follower(event_filter or EventFilter(), lambda: None)
    received = []
    async with aclosing(hub.follow(ACCOUNT, after, follower)) as batches:
        async for some in batches:
            received += [rendered.event.seq for batch in some for rendered in batch.events]
            after = max([after, *received[-1:], *(batch.cursor for batch in some if not batch.events)])
            if wait_for(after):
                break
            await asyncio.sleep(pause())
    return received, after


def has_reached(far, writing, at):
    """Whether a reader may stop. The log may end before `at`, so it also stops when the writers have ended."""
    return at >= far or writing.done()


async def wait_for(condition):
    while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
        await asyncio.sleep(0.005)


def run(work):
    return asyncio.run(asyncio.wait_for(work, SECONDS))


# -- nothing missed, nothing twice -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(sized(1, 20)))
def test_followers_at_any_cursor_get_every_event_once_and_in_order(engine, small_buffers, seed, monkeypatch):
    """Followers join and leave at random cursors with random filters while three threads write."""
    monkeypatch.setattr(hub, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr(hub, "TICK_SECONDS", 0.01)
    dice = random.Random(seed)
    write(engine, 20)
    writers = [threading.Thread(target=write, args=(engine, EVENTS // 3, f"job-{n}")) for n in (1, 2, 3)]

    async def scenario():
        hub = make_hub(engine)
        for thread in writers:
            thread.start()
        writing = asyncio.get_running_loop().run_in_executor(None, lambda: [thread.join() for thread in writers])
        await asyncio.gather(*(one(hub, random.Random(dice.random()), writing) for _ in range(FOLLOWERS)))
        hub.close()

    async def one(hub, own, writing):
        """Read, and at random leave and join again with the last cursor."""
        event_filter = own.choice(
            [
                EventFilter(),
                EventFilter("lease:*"),
                EventFilter(f"lease:job-{own.randrange(4)}"),
                EventFilter(kind="lease.c*"),
            ]
        )
        await asyncio.sleep(own.uniform(0, 0.03))
        first = after = own.randrange(0, end(engine) + 1)
        received = []
        while True:
            over_at = end(engine) if writing.done() else None
            far = after + own.randrange(1, 40)
            enough = partial(has_reached, far, writing) if over_at is None else (lambda at, last=over_at: at >= last)
            if over_at is not None and after >= over_at:
                break
            some, after = await read(
                hub, after, event_filter, wait_for=enough, pause=lambda: own.choice([0, 0, 0.001, 0.005])
            )
            received += some
        assert received == log(engine, event_filter, first)

    run(scenario())


def test_the_cursor_of_a_follower_without_matches_advances(engine, small_buffers, monkeypatch):
    """Nothing matches its filter, but its cursor reaches the end: these events are not searched again."""
    monkeypatch.setattr(hub, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(hub, "TICK_SECONDS", 0.02)

    async def scenario():
        hub = make_hub(engine)
        writing = asyncio.get_running_loop().run_in_executor(None, partial(write, engine, 30))
        received, after = await read(hub, 0, EventFilter("task:*"), wait_for=lambda at: at >= 30)
        await writing
        hub.close()
        return received, after

    assert run(scenario()) == ([], 30)


def test_an_event_that_is_written_while_the_log_is_read_is_sent(engine):
    """Its notice comes before the feed waits for one."""
    late = ["late-1", "late-2", "late-3"]
    write(engine, 5)

    async def scenario():
        hub = make_hub(engine, lambda: late and write(engine, 1, late.pop(0)))
        received, _ = await asyncio.wait_for(read(hub, 0, wait_for=lambda at: at >= 8), 10)
        assert received == [1, 2, 3, 4, 5, 6, 7, 8]
        hub.close()

    run(scenario())


def test_a_heartbeat_never_announces_a_cursor_before_all_followers_have_their_batch(engine, monkeypatch):
    """Between two followers of one page the event loop runs other work, which may send a heartbeat."""
    monkeypatch.setattr(feed, "FOLLOWERS_AT_ONCE", 1)
    monkeypatch.setattr(feed, "PAUSE_SECONDS", 0.3)
    monkeypatch.setattr(feed, "MAX_PAUSE", 0.6)
    monkeypatch.setattr(hub, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(hub, "HEARTBEAT_SECONDS", 0.0)
    write(engine, 5)

    async def scenario():
        hub = make_hub(engine)
        page, _ = await hub._read(ACCOUNT, 0)
        lone = Feed(ACCOUNT, 0, engine.change_signal, hub._read, lambda: 2**20)
        followers = [Follower(EventFilter(), lambda: None) for _ in range(2)]
        for follower in followers:
            lone.join(follower, 0)
        distributing = asyncio.ensure_future(lone._distribute(page))
        await asyncio.sleep(0)
        assert [follower.cursor for follower in followers] == [5, 0]
        assert (lone.last, lone.settled) == (5, 0)
        hub._feeds[ACCOUNT] = asyncio.get_running_loop().create_future()
        hub._feeds[ACCOUNT].set_result(lone)
        beating = asyncio.ensure_future(hub._send_heartbeats())
        await asyncio.sleep(0.05)
        assert [follower.cursor for follower in followers] == [5, 0]
        hub._feeds.clear()
        await beating
        await distributing
        assert ([follower.cursor for follower in followers], lone.settled) == ([5, 5], 5)

    run(scenario())


def test_a_follower_slightly_behind_is_served_from_the_buffer(engine):
    """While the feed is open, its buffer has the newest events: the store is not queried for them."""
    looks = []

    async def scenario():
        hub = make_hub(engine)
        keeper = asyncio.ensure_future(read(hub, 0, wait_for=lambda at: at >= 40))
        await wait_for(hub.size)
        await asyncio.get_running_loop().run_in_executor(None, partial(write, engine, 30))
        await wait_for(lambda: hub._open_feeds()[0].settled == 30)
        inner = hub._query

        async def query_store(question):
            looks.append(question)
            return await inner(question)

        hub._query = query_store
        assert await read(hub, 10, wait_for=lambda at: at >= 30) == (list(range(11, 31)), 30)
        received = list(looks)
        await asyncio.get_running_loop().run_in_executor(None, partial(write, engine, 10, "job-1"))
        await keeper
        hub.close()
        return received

    assert run(scenario()) == []


# -- slow readers ------------------------------------------------------------------------------------------------


def test_a_reader_that_does_not_read_is_disconnected_without_skipped_events(engine, monkeypatch):
    monkeypatch.setattr(feed, "PAGE", 50)
    monkeypatch.setattr(hub, "PART", 20)
    cut = threading.Event()

    async def scenario():
        hub = make_hub(engine)
        follower = Follower(EventFilter(), cut.set)
        batches = hub.follow(ACCOUNT, 0, follower)
        first = asyncio.ensure_future(anext(batches))
        await wait_for(lambda: hub._open_feeds() and list(hub._open_feeds()[0].followers()))
        await asyncio.get_running_loop().run_in_executor(None, partial(write, engine, 2 * MAX_EVENTS + 100, at_once=50))
        received = [rendered.event.seq for batch in await first for rendered in batch.events]
        await wait_for(cut.is_set)
        async for some in batches:
            received += [rendered.event.seq for batch in some for rendered in batch.events]
        hub.close()
        return received

    received = run(scenario())
    assert received == list(range(1, len(received) + 1))
    assert MAX_EVENTS <= len(received) < 2 * MAX_EVENTS + 100


@pytest.mark.parametrize("in_buffer", [True, False], ids=["in the buffer", "in the store"])
def test_a_reader_far_behind_gets_one_slice_at_a_time(engine, in_buffer, monkeypatch):
    """A reader that stops reading has one slice in memory, whether the rest is in the buffer or in the store."""
    monkeypatch.setattr(feed, "SLICE_BYTES", 2_000)
    monkeypatch.setattr(hub, "SLICE_BYTES", 2_000)
    count = 2 * MAX_EVENTS

    async def scenario():
        hub = make_hub(engine)
        writing = partial(asyncio.get_running_loop().run_in_executor, None, partial(write, engine, count, at_once=50))
        keeper = asyncio.ensure_future(read(hub, 0, wait_for=lambda at: at >= count + 1))
        await wait_for(hub.size)
        await writing()
        await wait_for(lambda: hub._open_feeds()[0].settled == count)
        if not in_buffer:
            hub._open_feeds()[0]._buffer.clear()
        slices = []
        late = Follower(EventFilter(), lambda: None)
        async with aclosing(hub.follow(ACCOUNT, 0, late)) as batches:
            async for some in batches:
                slices.append(some)
                assert late._buffered == []
                if some[-1].cursor == count:
                    break
        await asyncio.get_running_loop().run_in_executor(None, partial(write, engine, 1, "another"))
        await keeper
        hub.close()
        return slices

    slices = run(scenario())
    assert [rendered.event.seq for some in slices for batch in some for rendered in batch.events] == list(
        range(1, count + 1)
    )
    sizes = [
        batch.size if in_buffer else sum(record_size(rendered.event) for rendered in batch.events)
        for (batch,) in slices
    ]
    assert max(len(batch.events) for (batch,) in slices) <= MAX_EVENTS
    assert max(sizes) < 2_000 + LARGEST
    assert len(slices) >= 5


# -- retention ---------------------------------------------------------------------------------------------------


def remove_events(engine, floor):
    engine.store.forget_events(ACCOUNT, floor)


def test_a_reader_overtaken_by_retention_gets_an_error(engine, small_buffers):
    """It has read one page when retention removes the next ones."""
    write(engine, 40)

    async def scenario():
        hub = make_hub(engine)
        follower = Follower(EventFilter(), lambda: None)
        batches = hub.follow(ACCOUNT, 0, follower)
        received = [rendered.event.seq for batch in await anext(batches) for rendered in batch.events]
        await asyncio.get_running_loop().run_in_executor(None, remove_events, engine, 20)
        with pytest.raises(CursorTooOld) as error:
            await anext(batches)
        hub.close()
        return received, error.value.facts["oldest"]

    assert run(scenario()) == ([1, 2, 3, 4, 5], 21)


def test_a_cursor_in_an_emptied_log_is_too_old(engine, small_buffers):
    """Everything after the cursor was removed: that is a gap, although there is nothing to read."""
    write(engine, 10)
    remove_events(engine, 10)

    async def scenario():
        hub = make_hub(engine)
        with pytest.raises(CursorTooOld):
            await read(hub, 4, wait_for=lambda _: True)
        hub.close()

    run(scenario())


def test_a_feed_overtaken_by_retention_ends_its_followers(engine, small_buffers):
    """The feed is not notified of the removal. Its next page has a gap, and all followers get the error."""
    write(engine, 10)

    async def scenario():
        hub = make_hub(engine)
        follower = Follower(EventFilter(), lambda: None)
        batches = hub.follow(ACCOUNT, 10, follower)
        first = asyncio.ensure_future(anext(batches))
        await wait_for(lambda: hub._open_feeds() and list(hub._open_feeds()[0].followers()))
        await asyncio.sleep(0.3)  # until the feed's first read has ended
        # Without the engine, so that no change is signalled.
        transact(engine.store, *(heartbeat("job-0", "l1") for _ in range(5)))
        remove_events(engine, 13)
        engine.call(heartbeat("job-0", "l1"))
        with pytest.raises(CursorTooOld):
            await first
        hub.close()

    run(scenario())


RESTORED_AT = 10**9


@pytest.mark.parametrize(
    ("second", "pages"),
    [
        (StoreUnavailable("the disk is gone"), [[1, 2], [3]]),
        ([RESTORED_AT], [[1, 2], [RESTORED_AT]]),
        ([3, 4], [[1, 2, 3, 4]]),
    ],
    ids=["an error", "a gap that a restore left", "the last part"],
)
def test_a_page_ends_before_what_cannot_follow_its_first_part(monkeypatch, second, pages):
    """What was read is sent. The rest is read again as a page of its own."""
    monkeypatch.setattr(feed, "PART_PAUSE", 0.0)
    parts = [[1, 2], second, [3] if isinstance(second, Exception) else second]

    async def read_part(_after):
        part = parts.pop(0)
        if isinstance(part, Exception):
            raise part
        events = [Event(ACCOUNT, "lease:job", seq, "lease.renewed", 0, "", "", "{}", seq) for seq in part]
        return [RenderedEvent(event, b"") for event in events], len(parts) == 2

    async def scenario():
        one = Feed(ACCOUNT, 0, None, read_part, lambda: 10**6)
        for page in pages:
            found, more = await one._read_page()
            assert [rendered.event.seq for rendered in found] == page
            assert more == (page is not pages[-1])

    run(scenario())


# -- drain -------------------------------------------------------------------------------------------------------


def test_a_stopping_server_ends_all_streams_at_once(engine):
    async def scenario():
        hub = make_hub(engine)
        followers = [asyncio.ensure_future(read(hub, 0, wait_for=lambda _: False)) for _ in range(5)]
        await wait_for(lambda: hub._open_feeds() and len(list(hub._open_feeds()[0].followers())) == 5)
        engine.change_signal.drain()
        await asyncio.wait_for(asyncio.gather(*followers), 3)
        assert hub.size() == 0
        hub.close()

    run(scenario())


def test_a_stopping_server_ends_streams_that_are_catching_up(engine, small_buffers):
    """One follower has a slice and stops reading, one waits to read the store."""
    write(engine, 40)

    async def scenario():
        hub = make_hub(engine)
        cut = asyncio.Event()
        idle = hub.follow(ACCOUNT, 0, Follower(EventFilter(), cut.set))
        await anext(idle)
        busy = asyncio.ensure_future(read(hub, 0, wait_for=lambda _: False, pause=lambda: 0.2))
        await wait_for(lambda: hub.size() == 2)
        engine.change_signal.drain()
        await asyncio.wait_for(cut.wait(), 5)
        assert [some async for some in idle] == []
        received, _ = await asyncio.wait_for(busy, 5)
        assert len(received) < 40
        hub.close()

    run(scenario())
