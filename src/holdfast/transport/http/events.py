"""The log: `/v1/events` for an account, `/v1/tasks/{id}/events` and `/attempts` for one task."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec

from holdfast.core import acl, task_contract
from holdfast.core import contract as contracts
from holdfast.core.attempts import attempts
from holdfast.core.errors import CursorTooOld, TaskMissing
from holdfast.core.event import Event, subject_of
from holdfast.core.lease import Lease
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.task import Task
from holdfast.engine.bells import log_of
from holdfast.store.contract import Reader
from holdfast.transport.http.door import Door
from holdfast.transport.http.message import Request, Response, json_response
from holdfast.transport.http.query import NO_STORE, Query
from holdfast.transport.times import milliseconds_or_none, rfc3339

PAGE, MAX_PAGE = 100, 1_000
MAX_WAIT = 60
SCANNED, AT_ONCE = 10_000, 1_001
RECENT = 100_000
"""How far back the events of one request are looked for."""

_HIDDEN = {"proof", "holder", "secret", "old_secret"}
_MOMENTS = ("_at", "_until", "_anchor")
"""How the names of columns end that hold a moment."""
"""Columns that prove something, if only by their hash."""
_ROOMS = subject_of(Lease("", ELECTION_PREFIX))


class _Filter(msgspec.Struct, frozen=True):
    """Which events are wanted."""

    subject: str | None
    kind: str | None
    request_id: str | None

    def fits(self, event: Event) -> bool:
        """A subject or a kind that ends in `*` stands for all that begin so. Rooms of elections are not told."""
        return (
            not event.subject.startswith(_ROOMS)
            and _matches(self.subject, event.subject)
            and _matches(self.kind, event.kind)
            and self.request_id in {None, event.request_id}
        )


class _Page(msgspec.Struct, frozen=True):
    """Events from a cursor on, and how far was looked."""

    events: list[Event]
    seen: int
    more: bool


async def list_events(door: Door, request: Request) -> Response:
    """The log of the account, oldest first, from a cursor on; with `wait_seconds`, as soon as there is something."""
    await door.authenticate(request)
    query = Query(request, {"after", "subject", "kind", "request_id", "limit", "wait_seconds"})
    limit = query.number("limit", 1, MAX_PAGE, default=PAGE)
    wait = query.seconds("wait_seconds", MAX_WAIT)
    after = query.number("after", 0, 2**53, default=0)
    wanted = _Filter(query.text("subject"), query.text("kind"), query.text("request_id"))
    query.done()
    account = request.by.account
    explicit = "after" in query.given()

    def look(reader: Reader) -> _Page:
        floor, last = reader.log_bounds(account)
        if explicit and after < floor:
            raise CursorTooOld(f"events up to {floor} are gone", oldest=floor + 1)
        if wanted.request_id is not None:
            found = reader.events_of_request(account, wanted.request_id, max(after, last - RECENT))
            return _Page([event for event in found if wanted.fits(event)][:limit], last, more=False)
        return _look(reader, account, max(after, floor), wanted, limit)

    if wait:
        page = await door.watch(log_of(account), look, lambda page: bool(page.events) or page.more, wait, request)
    else:
        page = await door.read(look)
    following = urlencode(query.given() | {"after": page.seen, "wait_seconds": 30})
    follow = contracts.action("list_events", f"GET /v1/events?{following}", best=True)
    return json_response(
        200,
        {
            "events": [event_document(event) for event in page.events],
            "nextCursor": page.seen,
            "hasMore": page.more,
            "agent_contract": contracts.contract(follow),
        },
        NO_STORE,
    )


def _look(reader: Reader, account: str, after: int, wanted: _Filter, limit: int) -> _Page:
    found: list[Event] = []
    seen, scanned = after, 0
    while scanned < SCANNED:
        page = reader.events(account, seen, AT_ONCE)
        scanned += len(page)
        if page and page[0].seq != seen + 1:
            raise CursorTooOld(f"events up to {page[0].seq - 1} are gone", oldest=page[0].seq)
        for event in page:
            if wanted.fits(event):
                if len(found) == limit:
                    return _Page(found, seen, more=True)
                found.append(event)
            seen = event.seq
        if len(page) < AT_ONCE:
            return _Page(found, seen, more=False)
    return _Page(found, seen, more=True)


async def task_events(door: Door, request: Request) -> Response:
    """Everything that happened to a task, oldest first."""
    history = await _history(door, request)
    query = Query(request, {"after", "limit"})
    after = query.number("after", 0, 2**53, default=0)
    limit = query.number("limit", 1, MAX_PAGE, default=MAX_PAGE)
    query.done()
    found = [event for event in history if event.version > after]
    return json_response(
        200,
        {
            "events": [event_document(event) for event in found[:limit]],
            "nextCursor": found[min(limit, len(found)) - 1].version if found else after,
            "hasMore": len(found) > limit,
            "agent_contract": task_contract.look_at(request.parameter),
        },
        NO_STORE,
    )


async def task_attempts(door: Door, request: Request) -> Response:
    """Who held a task, and how that went, oldest first."""
    history = await _history(door, request)
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
        for attempt in attempts(history)
    ]
    return json_response(200, {"attempts": tried, "agent_contract": task_contract.look_at(request.parameter)}, NO_STORE)


async def _history(door: Door, request: Request) -> list[Event]:
    """The events of a task, which may be gone itself: its log outlives it."""
    await door.authenticate(request)
    account, task_id = request.by.account, request.parameter
    history = await door.read(lambda reader: reader.history(account, subject_of(Task(account, task_id))))
    if not history:
        raise TaskMissing("there is no such task")
    return history


def event_document(event: Event) -> dict[str, Any]:
    """An event as its readers see it: times as times, nothing that proves anything."""
    return {
        "seq": event.seq,
        "subject": event.subject,
        "version": event.version,
        "kind": event.kind,
        "at": rfc3339(event.at),
        "actor": event.actor,
        "request_id": event.request_id,
        "data": shown_data(msgspec.json.decode(event.data)),
    }


def shown_data(told: dict[str, Any]) -> dict[str, Any]:
    """What an event tells, without what proves anything."""
    shown: dict[str, Any] = {}
    for name, value in told.items():
        if name in _HIDDEN:
            continue
        if name == "acl" and value is not None:
            shown[name] = acl.shown(msgspec.json.encode(value).decode())
        elif isinstance(value, dict) and name == "ended":
            shown[name] = shown_data(value)
        elif (name.endswith(_MOMENTS) or name == "at") and isinstance(value, int):
            shown[name] = rfc3339(value)
        else:
            shown[name] = value
    return shown


def _matches(pattern: str | None, text: str) -> bool:
    if pattern is None:
        return True
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern
