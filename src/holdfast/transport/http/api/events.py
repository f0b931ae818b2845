"""The log: `/v1/events` for an account, `/v1/tasks/{id}/events` and `/attempts` for one task."""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec

from holdfast.core.errors import CursorTooOld, TaskMissing
from holdfast.core.event import Event, subject_of
from holdfast.core.event_filter import EventFilter
from holdfast.core.event_page import data_size, is_full, take_bytes
from holdfast.core.log_gap import RESTORED, is_next, last_kept_seq
from holdfast.core.task import Task
from holdfast.core.task.attempts import list_attempts
from holdfast.engine.change_signal import account_log_key
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.advice.contract import check_state
from holdfast.transport.http.api.event_documents import event_document
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response
from holdfast.transport.http.streams.event_stream import stream_events, wants_stream
from holdfast.transport.times import milliseconds_or_none

PAGE_BYTES = 4 * 1024 * 1024
"""About so much is told at once, however many events were asked for."""
SCANNED, AT_ONCE = 10_000, 1_001
RECENT = 100_000
"""How far back the events of one request are looked for."""


class _Page(msgspec.Struct, frozen=True):
    """Events from a cursor on, and how far was looked."""

    events: list[Event]
    seen: int
    more: bool


async def list_events(ctx: HandlerContext, request: Request) -> Response:
    """The log of the account, oldest first, from a cursor on; with `wait_seconds`, as soon as there is something."""
    await ctx.authenticate(request)
    if wants_stream(request):
        return await stream_events(ctx, request)
    query = Query(request, {"after", "subject", "kind", "request_id", "limit", "wait_seconds"})
    limit = query.number("limit", bounds.EVENT_PAGE)
    wait = query.seconds("wait_seconds", bounds.WAIT)
    after = query.number("after", bounds.EVENT_CURSOR)
    wanted = EventFilter(query.text("subject"), query.text("kind"), query.text("request_id"), request.by.name_prefix)
    query.raise_errors()
    account = request.by.account
    explicit = "after" in query.values()

    def look(reader: Reader) -> _Page:
        floor, last = reader.log_bounds(account)
        if explicit and after < floor:
            raise CursorTooOld(f"events up to {floor} were removed", oldest=floor + 1)
        if wanted.request_id is not None:
            found = reader.events_of_request(
                account, wanted.request_id, max(after, _not_long_ago(reader, account, last))
            )
            return _cut([event for event in found if wanted.matches(event)], limit, last)
        return _look(reader, account, max(after, floor), wanted, limit)

    if wait:
        page = await ctx.wait_for(
            account_log_key(account), look, lambda page: bool(page.events) or page.more, wait, request
        )
    else:
        page = await ctx.read(look)
    following = urlencode(query.values() | {"after": page.seen, "wait_seconds": 30})
    return json_response(
        200,
        {
            "events": [event_document(event) for event in page.events],
            "nextCursor": page.seen,
            "hasMore": page.more,
            "agent_contract": check_state("list_events", query=following),
        },
        NO_STORE,
    )


def _look(reader: Reader, account: str, after: int, wanted: EventFilter, limit: int) -> _Page:
    found: list[Event] = []
    seen, scanned, size = after, 0, 0
    while scanned < SCANNED:
        page = reader.events(account, seen, AT_ONCE, PAGE_BYTES)
        scanned += len(page)
        for event in page:
            if not is_next(event, seen):
                raise CursorTooOld(f"events up to {event.seq - 1} were removed", oldest=event.seq)
            if wanted.matches(event):
                if len(found) == limit or size >= PAGE_BYTES:
                    return _Page(found, seen, more=True)
                found.append(event)
                size += data_size(event)
            seen = event.seq
        if not is_full(page, AT_ONCE, PAGE_BYTES):
            return _Page(found, seen, more=False)
    return _Page(found, seen, more=True)


def _cut(found: list[Event], limit: int, last: int) -> _Page:
    """The first of them; whoever has them all has looked at the log up to its last event."""
    shown = list(take_bytes(found[:limit], PAGE_BYTES))
    more = len(shown) < len(found)
    return _Page(shown, shown[-1].seq if more else last, more)


def _not_long_ago(reader: Reader, account: str, last: int) -> int:
    """Some events before the last one; those before a restore are not far away."""
    first = reader.events(account, max(last - RECENT, 0), 1)
    return (last_kept_seq(first[0]) if first and first[0].kind == RESTORED else last) - RECENT


async def task_events(ctx: HandlerContext, request: Request) -> Response:
    """Everything that happened to a task, oldest first."""
    history = await _history(ctx, request)
    query = Query(request, {"after", "limit"})
    after = query.number("after", bounds.EVENT_CURSOR)
    limit = query.number("limit", bounds.TASK_EVENT_PAGE)
    query.raise_errors()
    found = [event for event in history if event.version > after]
    shown = list(take_bytes(found[:limit], PAGE_BYTES))
    return json_response(
        200,
        {
            "events": [event_document(event) for event in shown],
            "nextCursor": shown[-1].version if shown else after,
            "hasMore": len(shown) < len(found),
            "agent_contract": task_advice.read_task(request.parameter),
        },
        NO_STORE,
    )


async def task_attempts(ctx: HandlerContext, request: Request) -> Response:
    """Who held a task, and how that went, oldest first."""
    history = await _history(ctx, request)
    tried = [
        {
            "attempt": attempt.attempt,
            "worker": attempt.worker,
            "claimedAt": milliseconds_or_none(attempt.claimed_at),
            "lastSeenAt": milliseconds_or_none(attempt.last_seen_at),
            "fencingToken": attempt.token,
            "endedAt": milliseconds_or_none(attempt.ended_at),
            "outcome": attempt.outcome,
            "reason": attempt.reason,
            "errorCode": attempt.code,
        }
        for attempt in list_attempts(history)
    ]
    return json_response(200, {"attempts": tried, "agent_contract": task_advice.read_task(request.parameter)}, NO_STORE)


async def _history(ctx: HandlerContext, request: Request) -> list[Event]:
    """The events of a task, which may be gone itself: its log outlives it."""
    await ctx.authenticate(request)
    account, task_id = request.by.account, request.parameter
    history = await ctx.read(lambda reader: reader.history(account, subject_of(Task(account, task_id))))
    if not history:
        raise TaskMissing("there is no such task")
    return history
