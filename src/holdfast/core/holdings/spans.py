"""Who held what, and when, rebuilt from events: one span for each time that one holder had one lease."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.event import SNAPSHOT, Event, is_whole, subject_of
from holdfast.core.holdings.held_by import owner_label
from holdfast.core.lease import EXPIRED, HANDED_OVER, JOB, RESTORED, UNDELIVERED, Lease, is_due, is_live
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.core.task import Task

HELD = "held"
"""How a span ends that has not ended."""
_BEGINNINGS = frozenset({"claimed", "reserved", HANDED_OVER})
_NOUNS = frozenset({Lease.noun, Reservation.noun, Task.noun})
_KEPT = ("owner", "worker", "session", "kind")
"""Columns that are remembered: an event has only those that changed."""


class Span(msgspec.Struct, frozen=True):
    """A time during which one holder had something."""

    noun: str
    """lease, reservation or task"""
    id: str
    owner: str | None
    since: Instant | None
    """None if it began before the events that were read."""
    until: Instant
    how: str
    """How it ended; `held` if it did not."""
    kind: str = JOB
    """job, lock, election, reservation or task"""
    session: str | None = None
    by: str | None = None
    reason: str | None = None


def held_spans(events: Iterable[Event], rows: Iterable[Lease | Reservation | Task], now: Instant) -> list[Span]:
    """The spans of some subjects, by their ends.

    `events` are the newest ones, oldest first; renewals are not needed. `rows` are what is held now, for what was
    claimed before the first event, and reservations that have ended: their last event does not name the owner.
    """
    scan = _Scan({subject_of(row): row for row in rows})
    for event in events:
        scan.read(event)
    return sorted((*scan.closed, *scan.held(now)), key=lambda span: (span.until, span.noun, span.id))


def session_names(events: Iterable[Event]) -> dict[str, str]:
    """Names of the sessions that were opened in these events, by id."""
    found = {}
    for event in events:
        noun, _, session_id = event.subject.partition(":")
        if noun == Session.noun:
            name = msgspec.json.decode(event.data).get("name")
            if isinstance(name, str):
                found[session_id] = name
    return found


class _Scan:
    """The state of each subject after the events that were read so far."""

    def __init__(self, rows: dict[str, Lease | Reservation | Task]) -> None:
        self.rows = rows
        self.closed: list[Span] = []
        self.open: dict[str, Span] = {}
        self.seen: set[str] = set()
        """Subjects of which a beginning or an end was read: the events know more than the row."""
        self.known: dict[str, dict[str, Any]] = {}

    def read(self, event: Event) -> None:
        noun, _, verb = event.kind.partition(".")
        if noun not in _NOUNS:
            return
        data: dict[str, Any] = msgspec.json.decode(event.data)
        known = self.known.setdefault(event.subject, {})
        is_reservation = noun == Reservation.noun
        known.update(
            (name, data[name]) for name in _KEPT if name in data and (is_reservation or data[name] is not None)
        )
        if verb == UNDELIVERED:  # its caller never had it
            self.open.pop(event.subject, None)
            self.seen.add(event.subject)
            self._forget_holder(event.subject, noun)
            return
        if "proof" not in data:
            return
        is_held = data["proof"] is not None and verb != RESTORED  # a restored reservation has nobody's lease id
        if verb != SNAPSHOT and (not is_held or verb == HANDED_OVER):
            self._close(event, noun, verb, data)
        # A reservation has one holder until it is handed over: granted again, it goes on. The end of a lease or task
        # whose next claim is read may have been damaged.
        is_new = event.subject not in self.open
        if is_held and ((verb in _BEGINNINGS and (is_new or noun != Reservation.noun)) or (is_whole(data) and is_new)):
            self._begin(event, noun, verb, data)

    def held(self, now: Instant) -> Iterable[Span]:
        """What is held at the end."""
        for subject, begun in self.open.items():
            row, span = self.rows.get(subject), self._with_last_owner(subject, begun)
            if row is not None and row.expires_at is not None and is_due(row, now):  # the sweep has not met it yet
                yield replace(span, until=row.expires_at, how=EXPIRED)
            else:
                yield replace(span, until=now)
        for subject, row in self.rows.items():
            if subject not in self.seen and is_live(row, now):
                yield Span(
                    row.noun, row.id, owner_label(row), row.claimed_at, now, HELD, kind=_kind(row), session=row.session
                )

    def _begin(self, event: Event, noun: str, verb: str, data: dict[str, Any]) -> None:
        known = self.known[event.subject]
        owner = known.get("worker" if noun == Task.noun else "owner")
        since = event.at if verb in _BEGINNINGS else data.get("claimed_at")
        kind = str(known.get("kind") or JOB) if noun == Lease.noun else noun
        self.seen.add(event.subject)
        self.open[event.subject] = Span(
            noun, event.subject.partition(":")[2], owner, since, event.at, HELD, kind=kind, session=known.get("session")
        )

    def _close(self, event: Event, noun: str, verb: str, data: dict[str, Any]) -> None:
        """End the span of the holder; one that began before the events is described by its last event or its row."""
        span, is_known = self.open.pop(event.subject, None), event.subject in self.seen
        self.seen.add(event.subject)
        self._forget_holder(event.subject, noun)
        if verb == HANDED_OVER:
            self.known[event.subject] |= _without_none({name: data.get(name) for name in _KEPT})
        ended = data.get("ended") if isinstance(data.get("ended"), dict) else None
        if span is None and not is_known:
            span = self._describe(event, noun, verb, ended or {})
        elif span is not None and verb != HANDED_OVER:
            span = self._with_last_owner(event.subject, span)
        if span is not None:
            ended = ended or {"by": data.get("ended_by"), "reason": data.get("ended_reason")}
            how = ended.get("how") or ended.get("outcome") or verb
            found = replace(span, until=event.at, how=how, by=ended.get("by"), reason=ended.get("reason"))
            self.closed.append(found)

    def _with_last_owner(self, subject: str, span: Span) -> Span:
        """The span with the owner in the row of a reservation, if no event that was read names one."""
        row = self.rows.get(subject)
        return replace(span, owner=row.owner) if span.owner is None and isinstance(row, Reservation) else span

    def _forget_holder(self, subject: str, noun: str) -> None:
        """Forget who held it, except of a reservation, whose columns stay: granted again, it has only what changed."""
        if noun != Reservation.noun:
            self.known[subject] = {}

    def _describe(self, event: Event, noun: str, verb: str, ended: dict[str, Any]) -> Span | None:
        row_id, row = event.subject.partition(":")[2], self.rows.get(event.subject)
        if ended:
            owner, kind = ended.get("worker") or ended.get("owner"), ended.get("kind", JOB)
            kind = kind if noun == Lease.noun else noun
            return Span(noun, row_id, owner, ended.get("claimed_at"), event.at, HELD, kind=kind)
        if isinstance(row, Reservation) and verb != HANDED_OVER:  # the row has the last holder only
            return Span(noun, row_id, row.owner, row.claimed_at, event.at, HELD, kind=noun, session=row.session)
        return None


def _without_none(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value is not None}


def _kind(row: Lease | Reservation | Task) -> str:
    return row.kind or JOB if isinstance(row, Lease) else row.noun
