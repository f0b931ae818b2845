"""Events as lines of a list. Renewals are left out where other events would not be visible among them."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.event import RENEWALS, Event
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant
from holdfast.store.contract import Reader
from holdfast.store.contract.reads import usable_row
from holdfast.transport.dashboard.access.permissions import may_see_event
from holdfast.transport.dashboard.held import title_of

SCAN_LIMIT = 400
MAX_TITLES = 30
"""Reservations that are read to show their paths; further ones are shown by their ids."""
_LEFT_OUT = {*RENEWALS, "lease.snapshot", "reservation.snapshot", "session.snapshot", "task.snapshot"}
_NOUNS = {"lease": "name", "principal": "key"}
_OWNER_FIELDS = ("owner", "worker", "name")


class Line(msgspec.Struct, frozen=True):
    """One event, as it is shown."""

    seq: int
    kind: str
    noun: str
    id: str
    owner: str | None
    """The owner, worker or session name in the event, if it has one."""
    actor: str
    ago: Instant
    at: Instant
    reason: str | None
    title: str | None = None
    """What to call the subject instead of its id: the paths of a reservation."""


def recent(reader: Reader, by: Principal, limit: int) -> list[Line]:
    """The newest events that a key may see, without renewals, newest first."""
    _, last = reader.log_bounds(by.account)
    scanned = reader.events(by.account, max(last - SCAN_LIMIT, 0), SCAN_LIMIT)
    visible = [event for event in reversed(scanned) if event.kind not in _LEFT_OUT and may_see_event(by, event)]
    return with_titles(reader, by.account, [line(event, reader.now) for event in visible[:limit]])


def history(reader: Reader, account: str, subject: str, limit: int) -> list[Line]:
    """The events of one subject, newest first."""
    return [line(event, reader.now) for event in reader.recent_events(account, subject, limit)]


def with_titles(reader: Reader, account: str, lines: list[Line]) -> list[Line]:
    """The lines, those of reservations with their paths and owner: nobody knows them by their ids."""
    wanted = dict.fromkeys(each.id for each in lines if each.noun == Reservation.noun)
    rows = {row_id: usable_row(reader, Reservation, account, row_id) for row_id in islice(wanted, MAX_TITLES)}
    return [_with_title(each, rows.get(each.id)) for each in lines]


def _with_title(each: Line, row: Reservation | None) -> Line:
    return each if row is None else replace(each, title=title_of(row), owner=row.owner)


def line(event: Event, now: Instant) -> Line:
    """Convert an event to a line."""
    noun, _, row_id = event.subject.partition(":")
    data = msgspec.json.decode(event.data)
    ended = data["ended"] if isinstance(data.get("ended"), dict) else {}
    return Line(
        seq=event.seq,
        kind=event.kind,
        noun=_NOUNS.get(noun, noun),
        id=row_id,
        owner=_find_owner(data) or _find_owner(ended),
        actor=event.actor,
        ago=max(now - event.at, 0),
        at=event.at,
        reason=ended.get("reason") or data.get("ended_reason"),
        title=", ".join(data["paths"]) if noun == Reservation.noun and "paths" in data else None,
    )


def _find_owner(data: dict[str, Any]) -> str | None:
    return next((str(data[name]) for name in _OWNER_FIELDS if isinstance(data.get(name), str)), None)
