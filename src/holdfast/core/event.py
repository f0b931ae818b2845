"""Events of the log. An event records the columns that changed in one row; folding a row's events yields the row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import compress, zip_longest
from operator import is_not
from typing import Any, TypeVar

import msgspec
from msgspec.structs import astuple, replace

from holdfast.core.row import Instant, Row

R = TypeVar("R", bound=Row)

SNAPSHOT = "snapshot"
"""Verb of an event that records a whole row, so that retention may remove the events before it."""

RENEWALS = ("lease.renewed", "reservation.renewed", "session.renewed", "task.renewed")
"""Renewals: frequent, and left out of summaries."""

REMOVAL_VERBS = frozenset({"purged", "forgotten", "removed"})
"""Verbs of events that remove the row."""

DAMAGED = "log.damaged"
"""Kind of the event that readers get in the place of a damaged one, so that they miss no number."""

_encode = msgspec.json.Encoder().encode

HIDDEN = "****"
"""Placeholder for a secret in the log."""


class Cause(msgspec.Struct, frozen=True):
    """Who asked for a change, and in which request."""

    actor: str
    request_id: str
    traceparent: str = ""
    """The request's W3C trace context; empty if it has none."""


class Event(msgspec.Struct, frozen=True):
    """One change of a row. `seq` numbers the events of an account, `version` those of a subject, both without gaps."""

    account: str
    subject: str
    version: int
    kind: str
    """`<noun>.<verb>`, e.g. `task.completed`; also the event type in streams and webhooks."""
    at: Instant
    actor: str
    request_id: str
    data: str
    seq: int = 0
    """Assigned by the store at the end of the transaction."""
    traceparent: str = ""


def damaged_event(event: Event, damage: str) -> Event:
    """The event that stands in the place of a damaged one: it belongs to no row, and has its number and version."""
    data = msgspec.json.encode({"damage": damage}).decode()
    return replace(event, subject=f"log:{event.seq}", kind=DAMAGED, actor="", request_id="", data=data, traceparent="")


def subject_of(row: Row) -> str:
    """The row's subject in the log: `<noun>:<id>`."""
    return f"{row.noun}:{row.id}"


def make_event(
    changed: dict[str, Any], after: Row, kind: str, cause: Cause, now: Instant, *, whole: bool = False
) -> Event:
    """Build the event of a change. It has the changed columns, large ones by hash; if `whole`, every column.

    A snapshot is whole, and so is the first event of a row that is made again after its removal: retention may remove
    the events before it at any moment, also while that event is being written.
    """
    special = after.special
    if whole:
        changed = row_image(after)
    elif not special.isdisjoint(changed):
        changed = dict(changed)
        for name in special.intersection(changed):
            if name in after.unlogged:
                del changed[name]
            else:
                changed[name] = _logged_value(after, name, changed[name])
    noun = after.noun
    return Event(
        after.account,
        f"{noun}:{after.id}",
        after.version,
        f"{noun}.{kind}",
        now,
        cause.actor,
        cause.request_id,
        _encode(changed).decode(),
        traceparent=cause.traceparent,
    )


def difference(before: Row, after: Row) -> dict[str, Any]:
    """The columns whose values differ, with their new values. Identity is compared first: most are the same object."""
    old_values, new_values = astuple(before), astuple(after)
    replaced = compress(
        zip(after.__struct_fields__, old_values, new_values, strict=True), map(is_not, old_values, new_values)
    )
    return {column: new for column, old, new in replaced if new != old}


def is_takeover(expired: Event, following: Event) -> bool:
    """Whether a lease expired, or was handed over, and was claimed in the same request: `following` is the next event.

    Watchers and OctoStore's webhooks then report the claim alone.
    """
    return (
        expired.kind.endswith((".expired", ".handed_over"))
        and following.kind.endswith(".claimed")
        and following.version == expired.version + 1
        and (following.request_id, following.at) == (expired.request_id, expired.at)
    )


class BrokenLog(Exception):
    """The events of a subject have a gap, so its row cannot be rebuilt."""


class DamagedLog(BrokenLog):
    """One of the events of a subject is damaged."""


def fold(blank: Row, events: Iterable[Event]) -> dict[str, Any] | None:
    """Replay a subject's events, oldest first, into the image of its row; None if the row was removed or never existed.

    Where retention has removed the first events, the replay starts at the first event that has the whole row.
    """
    image: dict[str, Any] | None = None
    version, cut = 0, False
    for event in events:
        if event.kind == DAMAGED:
            raise DamagedLog(f"{blank.noun}:{blank.id}: its event {event.seq} is damaged")
        verb = event.kind.partition(".")[2]
        if version == 0 and event.version != 1:
            version, cut = event.version - 1, True
        if event.version != version + 1:
            raise BrokenLog(f"{event.subject}: version {event.version} does not follow {version}")
        version = event.version
        data = msgspec.json.decode(event.data)
        if is_whole(data):
            image, cut = row_image(blank) | data, False  # an older server did not know every column
        elif verb in REMOVAL_VERBS:
            image, cut = None, False
        elif not cut:
            image = (row_image(blank) if image is None else image) | data
    if cut:
        raise BrokenLog(f"{blank.noun}:{blank.id}: its first events are missing and no snapshot replaces them")
    return image


def is_whole(data: dict[str, Any]) -> bool:
    """Whether an event's data has every column of its row: only then does it have the id, which never changes."""
    return "id" in data


def without_repeated_renewals(history: Sequence[Event]) -> list[Event]:
    """A subject's events, oldest first, with only the last of renewals in a row. The stores' queries do the same."""
    following = zip_longest(history, history[1:])
    return [
        event
        for event, after in following
        if event is not None and not (event.kind in RENEWALS and after is not None and after.kind in RENEWALS)
    ]


def apply(row: R, event: Event) -> R:
    """The row after one more event; columns that events record only by hash keep their values."""
    data = msgspec.json.decode(event.data)
    changed = {
        name: msgspec.json.encode(value).decode() if name in row.json and value is not None else value
        for name, value in data.items()
        if name in row.__struct_fields__ and name not in row.hashed
    }
    return replace(row, **changed)


def row_image(row: Row) -> dict[str, Any]:
    """The row as the log records it: what folding its events must yield."""
    logged = {
        column: _logged_value(row, column, value)
        for column, value in zip(row.__struct_fields__, astuple(row), strict=True)
        if column not in row.unlogged
    }
    image: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(logged))
    return image


def _logged_value(row: Row, column: str, value: Any) -> Any:
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
