"""The log: every change of every row, told by what changed. Folding a row's events gives the row back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import compress
from operator import is_not
from typing import Any, TypeVar

import msgspec
from msgspec.structs import astuple, replace

from holdfast.core.row import Instant, Row

R = TypeVar("R", bound=Row)

SNAPSHOT = "snapshot"
"""Tells a whole row, so that what came before may be forgotten."""

RENEWALS = ("lease.renewed", "session.renewed", "task.renewed")
"""Signs of life: many, and no news."""

GONE = frozenset({"purged", "forgotten", "removed"})
"""The last word on a row that is there no longer."""

HIDDEN = "****"
"""What stands in the log for a secret."""


class Cause(msgspec.Struct, frozen=True):
    """Who asked for a change, and in which request."""

    actor: str
    request_id: str
    traceparent: str = ""
    """Where that request belongs in a trace, if in any."""


class Event(msgspec.Struct, frozen=True):
    """One change. `seq` is dense per account, `version` per subject; neither has gaps."""

    account: str
    subject: str
    version: int
    kind: str
    """`task.completed`, `lease.expired`: also the type under which streams and receivers of events know it."""
    at: Instant
    actor: str
    request_id: str
    data: str
    seq: int = 0
    """Given by the store at the end of the transaction."""
    traceparent: str = ""


def subject_of(row: Row) -> str:
    """What the log calls a row."""
    return f"{row.noun}:{row.id}"


def tell(changed: dict[str, Any], after: Row, kind: str, cause: Cause, now: Instant) -> Event:
    """The event of one change: only the columns that differ, large ones by hash; a snapshot tells them all."""
    special = after.special
    if kind == SNAPSHOT:
        changed = picture(after)
    elif not special.isdisjoint(changed):
        changed = {name: _shown(after, name, new) if name in special else new for name, new in changed.items()}
    return Event(
        account=after.account,
        subject=subject_of(after),
        version=after.version,
        kind=f"{after.noun}.{kind}",
        at=now,
        actor=cause.actor,
        request_id=cause.request_id,
        data=msgspec.json.encode(changed).decode(),
        traceparent=cause.traceparent,
    )


def difference(before: Row, after: Row) -> dict[str, Any]:
    """The columns that differ, as they are now. Most are the very same object, which costs next to nothing to see."""
    old, new, columns = astuple(before), astuple(after), after.__struct_fields__
    others = compress(range(len(new)), map(is_not, new, old))
    return {columns[place]: new[place] for place in others if new[place] != old[place]}


class BrokenLog(Exception):
    """The log of a subject does not tell its story without gaps."""


def fold(blank: Row, events: Iterable[Event]) -> dict[str, Any] | None:
    """Replay a subject's events, oldest first, into the image of its row; None if it is gone, or never was.

    Where retention has cut the beginning off, the story starts at the first snapshot.
    """
    image: dict[str, Any] | None = None
    version, cut = 0, False
    for event in events:
        verb = event.kind.partition(".")[2]
        if version == 0 and event.version != 1:
            version, cut = event.version - 1, True
        if event.version != version + 1:
            raise BrokenLog(f"{event.subject}: version {event.version} does not follow {version}")
        version = event.version
        told = msgspec.json.decode(event.data)
        if verb == SNAPSHOT:
            image, cut = told, False
        elif verb in GONE:
            image, cut = None, False
        elif not cut:
            image = (picture(blank) if image is None else image) | told
    if cut:
        raise BrokenLog(f"{blank.noun}:{blank.id}: the beginning is gone and no snapshot stands for it")
    return image


def apply(row: R, event: Event) -> R:
    """The row after one more event; columns that events tell by hash stay as they are."""
    told = msgspec.json.decode(event.data)
    changed = {
        name: msgspec.json.encode(value).decode() if name in row.json and value is not None else value
        for name, value in told.items()
        if name in row.__struct_fields__ and name not in row.hashed
    }
    return replace(row, **changed)


def picture(row: Row) -> dict[str, Any]:
    """The image of a row that folding its events must give."""
    shown = {
        column: _shown(row, column, value) for column, value in zip(row.__struct_fields__, astuple(row), strict=True)
    }
    image: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(shown))
    return image


def _shown(row: Row, column: str, value: Any) -> Any:
    if value is None:
        return None
    if column in row.hidden:
        return HIDDEN
    if column in row.hashed:
        raw = value.encode()
        return {"sha256": hashlib.sha256(raw).hexdigest(), "size": len(raw)}
    if column in row.json:
        return msgspec.Raw(value.encode())
    return value
