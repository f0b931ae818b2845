"""OctoStore's watches: `/locks/{name}/watch` and `/elections/{id}/watch`, on the same feed as every other stream.

A watch begins with how things stand, and folds the log from there: no change is lost, and none is read twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing
from itertools import zip_longest
from typing import Any

from holdfast.core import lease as leases
from holdfast.core.errors import CursorTooOld
from holdfast.core.event import Event, apply, is_takeover, subject_of
from holdfast.core.event_filter import EventFilter
from holdfast.core.lease import Lease
from holdfast.core.names import DEFAULT_ACCOUNT, ELECTION_PREFIX, election_lease_name
from holdfast.core.row import Instant
from holdfast.store.contract import Reader
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import milliseconds_left
from holdfast.transport.http.octostore.elections import check_enabled, leader
from holdfast.transport.http.octostore.locks import usable_name
from holdfast.transport.http.request import Request, Response
from holdfast.transport.http.streams import frames
from holdfast.transport.http.streams.follower import Batch, Follower
from holdfast.transport.http.streams.sending import abort_of, begin
from holdfast.transport.times import rfc3339

MAX_WAITING = 100
HEAD = ((b"cache-control", b"no-cache"), (b"connection", b"close"))
_WORDS = {
    "claimed": "acquired",
    "reissued": "acquired",
    "renewed": "renewed",
    "extended": "renewed",
    "expired": "expired",
    "released": "released",
    "forced": "released",
    "undelivered": "released",
}
"""What watchers of a lock call what happened; of anything else they are not told."""
_WITH_TOKEN = {"acquired", "renewed"}


async def watch_lock(ctx: HandlerContext, request: Request) -> Response:
    """How a lock stands, then every change of its holder."""
    await ctx.authenticate(request)
    name = usable_name(request)
    return Response(200, b"", HEAD, frames.MEDIA, await begin(_of_lock(ctx, request, name)))


async def watch_election(ctx: HandlerContext, request: Request) -> Response:
    """Who leads, again whenever that changes, for as long as a watch may last."""
    check_enabled(ctx)
    room = election_lease_name(request.parameter)
    return Response(200, b"", HEAD, frames.MEDIA, await begin(_of_election(ctx, request, room)))


async def _of_lock(ctx: HandlerContext, request: Request, name: str) -> AsyncGenerator[bytes, None]:
    account = request.by.account
    follower = _follower(request, account, name)
    with (
        ctx.stream_limits.per_account.acquire(request.by.id),
        ctx.stream_limits.watched_names.acquire((account, name)),
        ctx.stream_keys.monitor(request, follower),
    ):
        lease, now, end = await ctx.read(lambda reader: _look(reader, account, name))
        yield _lock_frame("acquired" if leases.is_live(lease, now) else "released", lease, now)
        async with aclosing(_changes(ctx, account, end, follower)) as changes:
            async for events in changes:
                frame = b"" if events else b":\n\n"
                for event, following in zip_longest(events, events[1:]):
                    if event.version <= lease.version:  # the first look has seen it
                        continue
                    lease = apply(lease, event)
                    word = _WORDS.get(event.kind.partition(".")[2])
                    is_taken_over = following is not None and is_takeover(event, following)
                    if word is not None and not is_taken_over:
                        frame += _lock_frame(word, lease, event.at)
                if frame:
                    yield frame


async def _of_election(ctx: HandlerContext, request: Request, room: str) -> AsyncGenerator[bytes, None]:
    follower = _follower(request, DEFAULT_ACCOUNT, room)
    with ExitStack() as places:
        places.enter_context(ctx.stream_limits.election_watches.acquire(ctx.network.client(request)))
        places.enter_context(ctx.stream_limits.watched_names.acquire((DEFAULT_ACCOUNT, room)))
        lease, now, end = await ctx.read(lambda reader: _look(reader, DEFAULT_ACCOUNT, room))
        lifetime = ctx.settings.public_election_watch_max_seconds
        places.callback(asyncio.get_running_loop().call_later(lifetime, follower.end).cancel)
        yield _election_frame(lease, now)
        async with aclosing(_changes(ctx, DEFAULT_ACCOUNT, end, follower)) as changes:
            async for events in changes:
                news = [event for event in events if event.version > lease.version]
                for event in news:
                    lease = apply(lease, event)
                if news:
                    yield _election_frame(lease, news[-1].at)
                elif not events:
                    yield b": keepalive\n\n"


def _follower(request: Request, account: str, name: str) -> Follower:
    wanted = EventFilter(subject_of(Lease(account, name)), elections=True)
    return Follower(wanted, abort_of(request), most=MAX_WAITING)


def _look(reader: Reader, account: str, name: str) -> tuple[Lease, Instant, int]:
    """The row, the time, and the log's end, which is read first: what comes in between is told by the log."""
    _, end = reader.log_bounds(account)
    return reader.row(Lease, account, name) or Lease(account, name), reader.now, end


async def _changes(
    ctx: HandlerContext, account: str, after: int, follower: Follower
) -> AsyncGenerator[list[Event], None]:
    """The events of one name, some at a time; none of them after a long silence. A watch that fell behind ends."""
    async with aclosing(ctx.hub.follow(account, after, follower)) as batches:
        try:
            async for some in batches:
                yield _events_of(some)
        except CursorTooOld:
            return


def _events_of(batches: list[Batch]) -> list[Event]:
    return [told.event for batch in batches for told in batch.told]


def _lock_frame(word: str, lease: Lease, at: Instant) -> bytes:
    document: dict[str, Any] = {"event": word, "lock_name": lease.id}
    if word in _WITH_TOKEN:
        document |= {"fencing_token": lease.token, "expires_at": rfc3339(lease.expires_at or at)}
    return b"data: %b\n\n" % frames.ascii_json(document | {"observed_at": rfc3339(at)})


def _election_frame(lease: Lease, at: Instant) -> bytes:
    led = leases.is_live(lease, at)
    document = {
        "schema_version": 1,
        "election_id": lease.id.removeprefix(ELECTION_PREFIX),
        "status": "leader" if led else "vacant",
        "leader": leader(lease) if led else None,
        "retry_after_ms": milliseconds_left(lease.expires_at, at) if led else 0,
        "observed_at": rfc3339(at),
    }
    return b"event: state\nretry:1000\ndata: %b\n\n" % frames.ascii_json(document)
