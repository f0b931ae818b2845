"""The event log: `/v1/events` of an account, `/v1/tasks/{id}/events` and `/attempts` of one task."""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec

from holdfast.core.errors import CursorTooOld, TaskMissing
from holdfast.core.event import Event, subject_of
from holdfast.core.event_filter import EventFilter, filter_for
from holdfast.core.log_gap import RESTORED, check_cursor, is_next, last_kept_seq
from holdfast.core.page import PAGE_BYTES, cut, is_full, record_size
from holdfast.core.task import Task
from holdfast.core.task.attempts import AttemptRecord, list_attempts
from holdfast.engine.change_signal import account_log_key
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.store.contract.reads import whole_history
from holdfast.transport.advice import events as event_advice
from holdfast.transport.http.api.event_documents import event_document
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response
from holdfast.transport.http.streams.event_stream import stream_events, wants_stream
from holdfast.transport.times import milliseconds_or_none

MAX_SCANNED, READ_AT_ONCE = 10_000, 1_001
RECENT = 100_000
"""How many of the newest events are searched for those of one request."""


class _Page(msgspec.Struct, frozen=True):
    """Events after a cursor, and the cursor up to which the log was searched."""

    events: list[Event]
    cursor: int
    more: bool


async def list_events(ctx: HandlerContext, request: Request) -> Response:
    """The account's events after a cursor, oldest first; with `wait_seconds`, wait until there is one."""
    await ctx.authenticate(request)
    if wants_stream(request):
        return await stream_events(ctx, request)
    query = Query(request, {"after", "subject", "kind", "request_id", "limit", "wait_seconds"})
    limit = query.number("limit", bounds.EVENT_PAGE)
    wait = query.seconds("wait_seconds", bounds.WAIT)
    after = query.number("after", bounds.EVENT_CURSOR)
    event_filter = filter_for(request.by, query.text("subject"), query.text("kind"), query.text("request_id"))
    query.raise_errors()
    account = request.by.account
    explicit = "after" in query.values()

    def query_events(reader: Reader) -> _Page:
        floor, last = reader.log_bounds(account)
        if explicit:
            check_cursor(after, floor, last)
        if event_filter.request_id is not None:
            return _of_request(reader, account, max(after, _recent_cursor(reader, account, last)), event_filter, limit)
        return _search(reader, account, max(after, floor), event_filter, limit)

    if wait:
        page = await ctx.wait_for(
            account_log_key(account), query_events, lambda page: bool(page.events) or page.more, wait, request
        )
    else:
        page = await ctx.read(query_events)
    following = urlencode(query.values() | {"after": page.cursor, "wait_seconds": 30})
    return json_response(
        200,
        {
            "events": [event_document(event) for event in page.events],
            "nextCursor": page.cursor,
            "hasMore": page.more,
            "agent_contract": event_advice.listed(following, has_more=page.more),
        },
        NO_STORE,
    )


def _search(reader: Reader, account: str, after: int, event_filter: EventFilter, limit: int) -> _Page:
    found: list[Event] = []
    cursor, scanned, size = after, 0, 0
    while scanned < MAX_SCANNED:
        page = reader.events(account, cursor, READ_AT_ONCE, PAGE_BYTES)
        scanned += len(page)
        for event in page:
            if not is_next(event, cursor):
                raise CursorTooOld(f"events up to {event.seq - 1} were removed", oldest=event.seq)
            if event_filter.matches(event):
                if len(found) == limit or size >= PAGE_BYTES:
                    return _Page(found, cursor, more=True)
                found.append(event)
                size += record_size(event)
            cursor = event.seq
        if not is_full(page, READ_AT_ONCE, PAGE_BYTES):
            return _Page(found, cursor, more=False)
    return _Page(found, cursor, more=True)


def _of_request(reader: Reader, account: str, after: int, event_filter: EventFilter, limit: int) -> _Page:
    """The events of one request; if these are all, the log was searched up to its end."""
    assert event_filter.request_id is not None
    _, last = reader.log_bounds(account)
    found = reader.events_of_request(account, event_filter.request_id, after, limit + 1, PAGE_BYTES)
    page, more = cut(found, limit)
    return _Page([event for event in page if event_filter.matches(event)], page[-1].seq if more else last, more)


def _recent_cursor(reader: Reader, account: str, last: int) -> int:
    """The cursor from which recent events are searched. A restore leaves a gap in the numbers."""
    first = reader.events(account, max(last - RECENT, 0), 1)
    return (last_kept_seq(first[0]) if first and first[0].kind == RESTORED else last) - RECENT


async def task_events(ctx: HandlerContext, request: Request) -> Response:
    """The events of a task, oldest first."""
    await ctx.authenticate(request)
    query = Query(request, {"after", "limit"})
    after = query.number("after", bounds.EVENT_CURSOR)
    limit = query.number("limit", bounds.TASK_EVENT_PAGE)
    query.raise_errors()
    account, subject = request.by.account, subject_of(Task(request.by.account, request.parameter))

    def read_page(reader: Reader) -> list[Event]:
        page = reader.history(account, subject, after, limit + 1)
        if not page:
            check_cursor(after, 0, _last_version(reader, account, request.parameter))
        elif after:
            check_cursor(after, page[0].version - 1, page[0].version)
        return page

    events, more = cut(await ctx.read(read_page), limit)
    following = urlencode(query.values() | {"after": events[-1].version}) if more else None
    return json_response(
        200,
        {
            "events": [event_document(event) for event in events],
            "nextCursor": events[-1].version if events else after,
            "hasMore": more,
            "agent_contract": event_advice.task_read(request.parameter, following),
        },
        NO_STORE,
    )


def _last_version(reader: Reader, account: str, task_id: str) -> int:
    """The version of a task's last event; a task that was removed is still in the log."""
    task = reader.row(Task, account, task_id)
    if task is not None:
        return task.version
    last = 0
    for event in whole_history(reader, account, subject_of(Task(account, task_id)), brief=True):
        last = event.version
    if not last:
        raise TaskMissing("there is no such task")
    return last


async def task_attempts(ctx: HandlerContext, request: Request) -> Response:
    """The attempts at a task and their outcomes, oldest first."""
    await ctx.authenticate(request)
    account, subject = request.by.account, subject_of(Task(request.by.account, request.parameter))

    def read_attempts(reader: Reader) -> list[AttemptRecord]:
        if not reader.history(account, subject, limit=1):  # events are kept longer than the task itself
            raise TaskMissing("there is no such task")
        return list_attempts(whole_history(reader, account, subject, brief=True))

    documents = [
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
        for attempt in await ctx.read(read_attempts)
    ]
    return json_response(
        200, {"attempts": documents, "agent_contract": event_advice.task_read(request.parameter)}, NO_STORE
    )
