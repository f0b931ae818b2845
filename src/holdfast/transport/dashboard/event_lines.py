"""Events as lines of a list. Renewals are left out where other events would not be visible among them."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.principal import Principal
from holdfast.core.row import Instant
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.access.permissions import may_see_event

SCAN_LIMIT = 400
_LEFT_OUT = {"lease.renewed", "task.renewed", "session.renewed", "lease.snapshot", "task.snapshot", "session.snapshot"}
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


def recent(reader: Reader, by: Principal, limit: int) -> list[Line]:
    """The newest events that a key may see, without renewals, newest first."""
    _, last = reader.log_bounds(by.account)
    scanned = reader.events(by.account, max(last - SCAN_LIMIT, 0), SCAN_LIMIT)
    visible = [event for event in reversed(scanned) if event.kind not in _LEFT_OUT and may_see_event(by, event)]
    return [line(event, reader.now) for event in visible[:limit]]


def history(reader: Reader, account: str, subject: str, limit: int) -> list[Line]:
    """The events of one subject, newest first."""
    return [line(event, reader.now) for event in reader.recent_events(account, subject, limit)]


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
        reason=ended.get("reason"),
    )


def _find_owner(data: dict[str, Any]) -> str | None:
    return next((str(data[name]) for name in _OWNER_FIELDS if isinstance(data.get(name), str)), None)
