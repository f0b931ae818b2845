"""`GET /v1/events` as a stream of server-sent events, for callers that accept `text/event-stream`."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from holdfast.core.errors import CursorTooOld, Invalid
from holdfast.core.event_filter import EventFilter, filter_for
from holdfast.core.log_gap import check_cursor, is_next
from holdfast.operations.bounds import EVENT_CURSOR
from holdfast.store.contract import Reader
from holdfast.transport.http.bodies.query import Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Header, Request, Response
from holdfast.transport.http.streams import frames
from holdfast.transport.http.streams.follower import Follower
from holdfast.transport.http.streams.sending import begin, connection_abort

RETRY_MS = (500, 1500)
"""Range of the reconnection delay: readers that lost the same server come back at different times."""
LAST_EVENT_ID = b"last-event-id"
STREAM_HEAD: tuple[Header, ...] = (
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"connection", b"close"),  # the connection is not reused, so closing it affects no other request
)

_STREAM = frames.MEDIA.decode()


def wants_stream(request: Request) -> bool:
    """Whether the caller names `text/event-stream` in Accept; `*/*` does not count."""
    for entry in request.headers.get(b"accept", b"").decode("latin-1").lower().split(","):
        kind, *parameters = (part.strip() for part in entry.split(";"))
        if kind == _STREAM:
            return not any(re.fullmatch(r"q=0(\.0*)?", part) for part in parameters)
    return False


async def stream_events(ctx: HandlerContext, request: Request) -> Response:
    """Every event after the cursor, or from now on, one frame each, until the caller or the server ends it."""
    query = Query(request, {"after", "subject", "kind", "request_id"})
    after = query.number("after", EVENT_CURSOR)
    event_filter = filter_for(request.by, query.text("subject"), query.text("kind"), query.text("request_id"))
    query.raise_errors()
    sent = request.headers.get(LAST_EVENT_ID)
    cursor = _parse_last_event_id(sent) if sent else after if "after" in query.values() else None
    parts = await begin(_send_frames(ctx, request, cursor, event_filter))
    return Response(200, b"", STREAM_HEAD, frames.MEDIA, parts)


def _parse_last_event_id(sent: bytes) -> int:
    if not re.fullmatch(rb"[0-9]{1,16}", sent) or int(sent) > 2**53:
        message = "Last-Event-ID must be the id of an event in this log"
        raise Invalid(message, [{"pointer": "", "code": "invalid_header", "message": message}])
    return int(sent)


async def _send_frames(
    ctx: HandlerContext, request: Request, cursor: int | None, event_filter: EventFilter
) -> AsyncGenerator[bytes, None]:
    """The opening frame, then the events. A refusal is raised before the first frame."""
    account = request.by.account
    follower = Follower(event_filter, connection_abort(request))

    def start(reader: Reader) -> int:
        floor, last = reader.log_bounds(account)
        if cursor is None:
            return last
        check_cursor(cursor, floor, last)
        for event in reader.events(account, cursor, 1):
            if not is_next(event, cursor):  # a restore removed events that this reader has read
                raise CursorTooOld(f"events up to {event.seq - 1} were removed", oldest=event.seq)
        return cursor

    with (
        ctx.stream_limits.per_key.acquire(request.by.id),
        ctx.stream_limits.per_account.acquire(account),
        ctx.stream_keys.monitor(request, follower),
    ):
        after = await ctx.read(start)
        yield frames.opening(after, random.randint(*RETRY_MS))
        async with aclosing(ctx.hub.follow(account, after, follower)) as batches:
            try:
                async for ready in batches:
                    yield b"".join(batch.chunk or frames.heartbeat(batch.cursor) for batch in ready)
            except CursorTooOld as error:
                yield frames.reset(int(error.facts["oldest"]))
