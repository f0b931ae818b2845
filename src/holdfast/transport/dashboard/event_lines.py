"""Events as lines for people: who, what, when. Renewals are left out where they would drown the rest."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.principal import Principal
from holdfast.core.row import Instant
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.permissions import may_hear

LOOKED_AT = 400
_QUIET = {"lease.renewed", "task.renewed", "session.renewed", "lease.snapshot", "task.snapshot", "session.snapshot"}
_NOUNS = {"lease": "name", "principal": "key"}
_OWNERS = ("owner", "worker", "name")


class Line(msgspec.Struct, frozen=True):
    """One event."""

    seq: int
    kind: str
    noun: str
    id: str
    who: str | None
    """The label of whoever holds it, where the event tells one."""
    actor: str
    ago: Instant
    at: Instant
    reason: str | None


def recent(reader: Reader, by: Principal, limit: int) -> list[Line]:
    """The newest events that are news, newest first."""
    _, last = reader.log_bounds(by.account)
    found = reader.events(by.account, max(last - LOOKED_AT, 0), LOOKED_AT)
    news = [event for event in reversed(found) if event.kind not in _QUIET and may_hear(by, event)]
    return [line(event, reader.now) for event in news[:limit]]


def of_one(reader: Reader, account: str, subject: str, limit: int) -> list[Line]:
    """What happened to one thing, newest first."""
    return [line(event, reader.now) for event in reader.news(account, subject, limit)]


def line(event: Event, now: Instant) -> Line:
    """An event as a line."""
    noun, _, row_id = event.subject.partition(":")
    told = msgspec.json.decode(event.data)
    before = told.get("ended") if isinstance(told.get("ended"), dict) else {}
    return Line(
        seq=event.seq,
        kind=event.kind,
        noun=_NOUNS.get(noun, noun),
        id=row_id,
        who=_who(told) or _who(before or {}),
        actor=event.actor,
        ago=max(now - event.at, 0),
        at=event.at,
        reason=(before or {}).get("reason"),
    )


def _who(told: dict[str, Any]) -> str | None:
    return next((str(told[name]) for name in _OWNERS if isinstance(told.get(name), str)), None)
