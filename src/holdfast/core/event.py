"""The log: every change of every row, told by what changed. Folding a row's events gives the row back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import astuple

from holdfast.core.row import Instant, Row


class Cause(msgspec.Struct, frozen=True):
    """Who asked for a change, and in which request."""

    actor: str
    request_id: str


class Event(msgspec.Struct, frozen=True):
    """One change. `seq` is dense per account, `version` per subject; neither has gaps."""

    account: str
    subject: str
    version: int
    kind: str
    at: Instant
    actor: str
    request_id: str
    data: str
    seq: int = 0
    """Given by the store at the end of the transaction."""


def subject_of(row: Row) -> str:
    """What the log calls a row."""
    return f"{row.noun}:{row.id}"


def tell(before: Row, after: Row, kind: str, cause: Cause) -> Event:
    """The event of one change: only the columns that differ, large ones by hash."""
    changed: dict[str, Any] = {
        column: new
        for column, old, new in zip(after.__struct_fields__, astuple(before), astuple(after), strict=True)
        if new is not old and new != old
    }
    for column in changed.keys() & after.special:
        changed[column] = _shown(after, column, changed[column])
    return Event(
        account=after.account,
        subject=subject_of(after),
        version=after.version,
        kind=f"{after.noun}.{kind}",
        at=after.changed_at,
        actor=cause.actor,
        request_id=cause.request_id,
        data=msgspec.json.encode(changed).decode(),
    )


def fold(blank: Row, events: Iterable[Event]) -> dict[str, Any]:
    """Replay a subject's events, oldest first, into the image of its row."""
    image = picture(blank)
    for event in events:
        assert event.version == image["version"] + 1, f"{event.subject}: version {event.version} does not follow"
        image |= msgspec.json.decode(event.data)
    return image


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
    if column in row.hashed:
        raw = value.encode()
        return {"sha256": hashlib.sha256(raw).hexdigest(), "size": len(raw)}
    if column in row.json:
        return msgspec.Raw(value.encode())
    return value
