"""OctoStore's `/locks/{name}/watch` and `/elections/{id}/watch`, on the same feeds as the event stream.

A watch begins with the present state and applies the events of the log to it: no change is lost or sent twice.
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
from holdfast.transport.http.streams.sending import begin, connection_abort
from holdfast.transport.times import rfc3339

MAX_BUFFERED = 100
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
    "handed_over": "released",
    "offered": "renewed",
    "offer_withdrawn": "renewed",
    "done": "released",
    "failed": "released",
}
"""OctoStore's word for each kind of event; events of other kinds are not sent."""
_WITH_TOKEN = {"acquired", "renewed"}


async def watch_lock(ctx: HandlerContext, request: Request) -> Response:
    """The state of a lock, then every change of its holder."""
    await ctx.authenticate(request)
    name = usable_name(request)
    return Response(200, b"", HEAD, frames.MEDIA, await begin(_lock_frames(ctx, request, name)))


async def watch_election(ctx: HandlerContext, request: Request) -> Response:
    """The leader, then every change of it, for at most as long as the settings allow."""
    check_enabled(ctx)
    name = election_lease_name(request.parameter)
    return Response(200, b"", HEAD, frames.MEDIA, await begin(_election_frames(ctx, request, name)))


async def _lock_frames(ctx: HandlerContext, request: Request, name: str) -> AsyncGenerator[bytes, None]:
    account = request.by.account
    follower = _make_follower(request, account, name)
    with (
        ctx.stream_limits.per_account.acquire(request.by.id),
        ctx.stream_limits.watched_names.acquire((account, name)),
        ctx.stream_keys.monitor(request, follower),
    ):
        lease, now, end = await ctx.read(lambda reader: _read_state(reader, account, name))
        yield _lock_frame("acquired" if leases.is_live(lease, now) else "released", lease, now)
        async with aclosing(_changes(ctx, account, end, follower)) as changes:
            async for events in changes:
                frame = b"" if events else b":\n\n"
                for event, following in zip_longest(events, events[1:]):
                    if event.version <= lease.version:  # the first read contains it
                        continue
                    lease = apply(lease, event)
                    word = _WORDS.get(event.kind.partition(".")[2])
                    is_taken_over = following is not None and is_takeover(event, following)
                    if word is not None and not is_taken_over:
                        frame += _lock_frame(word, lease, event.at)
                if frame:
                    yield frame


async def _election_frames(ctx: HandlerContext, request: Request, name: str) -> AsyncGenerator[bytes, None]:
    follower = _make_follower(request, DEFAULT_ACCOUNT, name)
    with ExitStack() as limits:
        limits.enter_context(ctx.stream_limits.election_watches.acquire(ctx.network.client(request)))
        limits.enter_context(ctx.stream_limits.watched_names.acquire((DEFAULT_ACCOUNT, name)))
        lease, now, end = await ctx.read(lambda reader: _read_state(reader, DEFAULT_ACCOUNT, name))
        lifetime = ctx.settings.public_election_watch_max_seconds
        limits.callback(asyncio.get_running_loop().call_later(lifetime, follower.end).cancel)
        yield _election_frame(lease, now)
        async with aclosing(_changes(ctx, DEFAULT_ACCOUNT, end, follower)) as changes:
            async for events in changes:
                new = [event for event in events if event.version > lease.version]
                for event in new:
                    lease = apply(lease, event)
                if new:
                    yield _election_frame(lease, new[-1].at)
                elif not events:
                    yield b": keepalive\n\n"


def _make_follower(request: Request, account: str, name: str) -> Follower:
    event_filter = EventFilter(subject_of(Lease(account, name)), elections=True)
    return Follower(event_filter, connection_abort(request), max_events=MAX_BUFFERED)


def _read_state(reader: Reader, account: str, name: str) -> tuple[Lease, Instant, int]:
    """The row, the time, and the end of the log, which is read first: what changes in between is in the log."""
    _, end = reader.log_bounds(account)
    return reader.row(Lease, account, name) or Lease(account, name), reader.now, end


async def _changes(
    ctx: HandlerContext, account: str, after: int, follower: Follower
) -> AsyncGenerator[list[Event], None]:
    """Events of one name, in lists; an empty list is a heartbeat. A watch whose next events were removed ends."""
    async with aclosing(ctx.hub.follow(account, after, follower)) as batches:
        try:
            async for ready in batches:
                yield _events_in(ready)
        except CursorTooOld:
            return


def _events_in(batches: list[Batch]) -> list[Event]:
    return [rendered.event for batch in batches for rendered in batch.events]


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
