"""The hub by itself, over every store: seams, slow readers, retention in the midst, long silence.

The ring is made tiny, so that followers fall out of it and catch up with it all the time.
"""

import asyncio
import random
import threading
from contextlib import aclosing
from functools import partial

import pytest

from holdfast.core.errors import CursorTooOld
from holdfast.core.event_filter import EventFilter
from holdfast.core.event_page import data_size
from holdfast.engine.engine import Engine
from holdfast.transport.http.streams import feed, hub
from holdfast.transport.http.streams.feed import Feed
from holdfast.transport.http.streams.follower import MAX_EVENTS, Follower
from holdfast.transport.http.streams.hub import Hub
from tests.proof_size import sized
from tests.support import ACCOUNT, STORES, Futures, claim, heartbeat, make_store, stop_in_time, transact

NAMES = 7
EVENTS = sized(300, 5_000)
FOLLOWERS = sized(12, 60)
SECONDS = 60
LARGEST = 1_500
"""More than any frame here."""


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
def small(monkeypatch):
    """A ring and pages of a few events, and hardly any rest."""
    monkeypatch.setattr(feed, "PAGE", 5)
    monkeypatch.setattr(hub, "PAGE", 5)
    monkeypatch.setattr(hub, "SLICE_EVENTS", 5)
    monkeypatch.setattr(feed, "SLICE_EVENTS", 3)
    monkeypatch.setattr(feed, "BUFFER_EVENTS", 8)
    monkeypatch.setattr(feed, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(feed, "FOLLOWERS_AT_ONCE", 2)


def hub_over(engine):
    """What a door makes."""

    async def look(question):
        return await asyncio.get_running_loop().run_in_executor(None, engine.read, question)

    return Hub(engine.change_signal, look, "test", engine.registry)


def write(engine, count, name="job-0", at_once=4):
    """So many events of one name, a few in each transaction."""
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


async def read(over, after, event_filter=None, *, until, pause=lambda: 0.0):
    """Follow from a cursor until the stream has come to an end of the log; (what was seen, how far it came)."""
    follower = Follower(event_filter or EventFilter(), lambda: None)
    seen = []
    async with aclosing(over.follow(ACCOUNT, after, follower)) as batches:
        async for some in batches:
            seen += [rendered.event.seq for batch in some for rendered in batch.events]
            after = max([after, *seen[-1:], *(batch.cursor for batch in some if not batch.events)])
            if until(after):
                break
            await asyncio.sleep(pause())
    return seen, after


def far_enough(far, writing, at):
    """The log may end before that place: nobody writes on, and the reader would wait for ever."""
    return at >= far or writing.done()


async def until(true):
    while not true():  # noqa: ASYNC110 - what is waited for tells nobody
        await asyncio.sleep(0.005)


def run(work):
    return asyncio.run(asyncio.wait_for(work, SECONDS))


# -- nothing missed, nothing twice -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(sized(2, 20)))
def test_whoever_joins_where_and_when_they_like_sees_every_event_once_and_in_order(engine, small, seed, monkeypatch):
    """Followers come and go at random places with random wishes while three threads write."""
    monkeypatch.setattr(hub, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr(hub, "TICK_SECONDS", 0.01)
    dice = random.Random(seed)
    write(engine, 20)
    writers = [threading.Thread(target=write, args=(engine, EVENTS // 3, f"job-{n}")) for n in (1, 2, 3)]

    async def scenario():
        over = hub_over(engine)
        for thread in writers:
            thread.start()
        writing = asyncio.get_running_loop().run_in_executor(None, lambda: [thread.join() for thread in writers])
        await asyncio.gather(*(one(over, random.Random(dice.random()), writing) for _ in range(FOLLOWERS)))
        over.close()

    async def one(over, own, writing):
        """Reads in stretches: it leaves now and then and comes back with the last cursor it knows."""
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
        seen = []
        while True:
            over_at = end(engine) if writing.done() else None
            far = after + own.randrange(1, 40)
            enough = partial(far_enough, far, writing) if over_at is None else (lambda at, last=over_at: at >= last)
            if over_at is not None and after >= over_at:
                break
            some, after = await read(
                over, after, event_filter, until=enough, pause=lambda: own.choice([0, 0, 0.001, 0.005])
            )
            seen += some
        assert seen == log(engine, event_filter, first)

    run(scenario())


def test_a_silent_follower_moves_on_with_the_log(engine, small, monkeypatch):
    """Nothing fits its wish, yet its cursor comes to the end: it would not have to look at the rest again."""
    monkeypatch.setattr(hub, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(hub, "TICK_SECONDS", 0.02)

    async def scenario():
        over = hub_over(engine)
        writing = asyncio.get_running_loop().run_in_executor(None, partial(write, engine, 30))
        seen, after = await read(over, 0, EventFilter("task:*"), until=lambda at: at >= 30)
        await writing
        over.close()
        return seen, after

    assert run(scenario()) == ([], 30)


def test_nobody_is_told_to_have_missed_nothing_before_everybody_has_their_batch(engine, monkeypatch):
    """Between two followers of one page other work gets its turn: a beat at that moment must not promise too much."""
    monkeypatch.setattr(feed, "FOLLOWERS_AT_ONCE", 1)
    write(engine, 5)

    async def scenario():
        over = hub_over(engine)
        page, _ = await over._read(ACCOUNT, 0)
        lone = Feed(ACCOUNT, 0, engine.change_signal, over._read, lambda: 2**20)
        followers = [Follower(EventFilter(), lambda: None) for _ in range(2)]
        for follower in followers:
            lone.join(follower, 0)
        distributing = asyncio.ensure_future(lone._distribute(page))
        await asyncio.sleep(0)
        assert [follower.cursor for follower in followers] == [5, 0]
        assert (lone.last, lone.settled) == (5, 0)
        await distributing
        assert ([follower.cursor for follower in followers], lone.settled) == ([5, 5], 5)

    run(scenario())


def test_whoever_comes_back_from_a_little_behind_is_served_from_the_buffer(engine):
    """While anybody follows, the newest events are at hand: no look at the store is needed for them."""
    looks = []

    async def scenario():
        over = hub_over(engine)
        keeper = asyncio.ensure_future(read(over, 0, until=lambda at: at >= 40))
        await until(over.size)
        await asyncio.get_running_loop().run_in_executor(None, partial(write, engine, 30))
        await until(lambda: over._open_feeds()[0].settled == 30)
        inner = over._query

        async def look(question):
            looks.append(question)
            return await inner(question)

        over._query = look
        assert await read(over, 10, until=lambda at: at >= 30) == (list(range(11, 31)), 30)
        seen = list(looks)
        await asyncio.get_running_loop().run_in_executor(None, partial(write, engine, 10, "job-1"))
        await keeper
        over.close()
        return seen

    assert run(scenario()) == []


# -- slow readers ------------------------------------------------------------------------------------------------


def test_a_reader_who_does_not_read_is_cut_and_never_skipped(engine, monkeypatch):
    monkeypatch.setattr(feed, "PAGE", 50)
    monkeypatch.setattr(hub, "PAGE", 50)
    cut = threading.Event()

    async def scenario():
        over = hub_over(engine)
        follower = Follower(EventFilter(), cut.set)
        batches = over.follow(ACCOUNT, 0, follower)
        first = asyncio.ensure_future(anext(batches))
        await until(lambda: over._open_feeds() and list(over._open_feeds()[0].followers()))
        await asyncio.get_running_loop().run_in_executor(None, partial(write, engine, 2 * MAX_EVENTS + 100, at_once=50))
        seen = [rendered.event.seq for batch in await first for rendered in batch.events]
        await until(cut.is_set)
        async for some in batches:
            seen += [rendered.event.seq for batch in some for rendered in batch.events]
        over.close()
        return seen

    seen = run(scenario())
    assert seen == list(range(1, len(seen) + 1))
    assert MAX_EVENTS <= len(seen) < 2 * MAX_EVENTS + 100


@pytest.mark.parametrize("kept", [True, False], ids=["in the buffer", "in the store"])
def test_whoever_has_far_to_go_is_given_a_little_at_a_time(engine, kept, monkeypatch):
    """All that is in memory for a reader who does not read on is one slice, wherever the rest of it is."""
    monkeypatch.setattr(feed, "SLICE_BYTES", 2_000)
    monkeypatch.setattr(hub, "SLICE_BYTES", 2_000)
    count = 2 * MAX_EVENTS

    async def scenario():
        over = hub_over(engine)
        writing = partial(asyncio.get_running_loop().run_in_executor, None, partial(write, engine, count, at_once=50))
        keeper = asyncio.ensure_future(read(over, 0, until=lambda at: at >= count + 1))
        await until(over.size)
        await writing()
        await until(lambda: over._open_feeds()[0].settled == count)
        if not kept:
            over._open_feeds()[0]._buffer.clear()
        slices = []
        late = Follower(EventFilter(), lambda: None)
        async with aclosing(over.follow(ACCOUNT, 0, late)) as batches:
            async for some in batches:
                slices.append(some)
                assert late._buffered == []
                if some[-1].cursor == count:
                    break
        await asyncio.get_running_loop().run_in_executor(None, partial(write, engine, 1, "another"))
        await keeper
        over.close()
        return slices

    slices = run(scenario())
    assert [rendered.event.seq for some in slices for batch in some for rendered in batch.events] == list(
        range(1, count + 1)
    )
    sizes = [batch.size if kept else sum(data_size(rendered.event) for rendered in batch.events) for (batch,) in slices]
    assert max(len(batch.events) for (batch,) in slices) <= MAX_EVENTS
    assert max(sizes) < 2_000 + LARGEST
    assert len(slices) >= 5


# -- retention ---------------------------------------------------------------------------------------------------


def forget(engine, floor):
    engine.store.forget_events(ACCOUNT, floor)


def test_retention_that_overtakes_a_reader_is_told(engine, small):
    """It has read a few pages; before the next one the log's beginning goes, and then the rest of what it asked for."""
    write(engine, 40)

    async def scenario():
        over = hub_over(engine)
        follower = Follower(EventFilter(), lambda: None)
        batches = over.follow(ACCOUNT, 0, follower)
        seen = [rendered.event.seq for batch in await anext(batches) for rendered in batch.events]
        await asyncio.get_running_loop().run_in_executor(None, forget, engine, 20)
        with pytest.raises(CursorTooOld) as told:
            await anext(batches)
        over.close()
        return seen, told.value.facts["oldest"]

    assert run(scenario()) == ([1, 2, 3, 4, 5], 21)


def test_an_empty_log_does_not_look_like_an_end(engine, small):
    """Everything after the cursor was removed: that is a gap, although there is nothing to read."""
    write(engine, 10)
    forget(engine, 10)

    async def scenario():
        over = hub_over(engine)
        with pytest.raises(CursorTooOld):
            await read(over, 4, until=lambda _: True)
        over.close()

    run(scenario())


def test_a_feed_that_retention_overtakes_ends_its_followers(engine, small):
    """The feed sleeps through it all: no bell rings for it. What it then finds has a gap, and everybody hears so."""
    write(engine, 10)

    async def scenario():
        over = hub_over(engine)
        follower = Follower(EventFilter(), lambda: None)
        batches = over.follow(ACCOUNT, 10, follower)
        first = asyncio.ensure_future(anext(batches))
        await until(lambda: over._open_feeds() and list(over._open_feeds()[0].followers()))
        # Past the engine, so that nobody is told.
        transact(engine.store, *(heartbeat("job-0", "l1") for _ in range(5)))
        forget(engine, 13)
        engine.call(heartbeat("job-0", "l1"))
        with pytest.raises(CursorTooOld):
            await first
        over.close()

    run(scenario())


# -- drain -------------------------------------------------------------------------------------------------------


def test_a_server_about_to_stop_ends_everybody_at_once(engine):
    async def scenario():
        over = hub_over(engine)
        followers = [asyncio.ensure_future(read(over, 0, until=lambda _: False)) for _ in range(5)]
        await until(lambda: over._open_feeds() and len(list(over._open_feeds()[0].followers())) == 5)
        engine.change_signal.drain()
        await asyncio.wait_for(asyncio.gather(*followers), 3)
        assert over.size() == 0
        over.close()

    run(scenario())


def test_readers_on_their_way_end_with_the_others(engine, small):
    """One has taken a slice and reads no further, one waits for its turn at the store; neither would ever come."""
    write(engine, 40)

    async def scenario():
        over = hub_over(engine)
        cut = asyncio.Event()
        idle = over.follow(ACCOUNT, 0, Follower(EventFilter(), cut.set))
        await anext(idle)
        busy = asyncio.ensure_future(read(over, 0, until=lambda _: False, pause=lambda: 0.2))
        await until(lambda: over.size() == 2)
        engine.change_signal.drain()
        await asyncio.wait_for(cut.wait(), 5)
        assert [some async for some in idle] == []
        seen, _ = await asyncio.wait_for(busy, 5)
        assert len(seen) < 40
        over.close()

    run(scenario())
