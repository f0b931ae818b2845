"""Commands of reservations: reserve, and what a holder or an administrator does with what is reserved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import msgspec
from msgspec.structs import replace

from holdfast.core import session as sessions
from holdfast.core.errors import LeaseLost, NotHeld, ReservationMissing, WrongToken
from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.lease import FORCED, RELEASED, UNDELIVERED, is_held, proof_of
from holdfast.core.principal import Principal
from holdfast.core.reservation import holding
from holdfast.core.reservation.holding import Conflict
from holdfast.core.reservation.patterns import Pattern, parse
from holdfast.core.reservation.row import LEFT, PLACE_LIFETIME, Request, Reservation, is_waiting, paths_of
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.engine.batches.steps import with_token
from holdfast.engine.command import Command, Outcome
from holdfast.engine.expiry import expire_reservation_if_due
from holdfast.engine.view import View
from holdfast.store.changes import Answer
from holdfast.store.needs import Needs

CALLER_LEFT = "the caller left"
"""Why a wait ended that nobody may continue. One without a sign of life may be begun again by its caller."""


class ReservationOutcome(Outcome, frozen=True, kw_only=True):
    """A reservation after a command."""

    row: Reservation

    def with_tokens(self, tokens: list[int]) -> Self:
        """The outcome with the token drawn for it."""
        return self if self.row.token >= 0 else replace(self, row=with_token(self.row, tokens))


class Reserved(ReservationOutcome, frozen=True, kw_only=True):
    """The caller holds the paths now. Only this answer contains the lease id."""

    lease_id: str
    replayed: bool = False


class Obstructed(Outcome, frozen=True, kw_only=True):
    """Others hold paths that meet the caller's, or wait for them and came first."""

    waits = True
    row: Reservation | None = None
    """The caller's own row, if it waits."""
    conflicts: tuple[Conflict, ...]
    waiting_id: str | None = None
    """Keeps the caller's place for a while, if it waited for as long as it wanted to."""

    @property
    def waiting(self) -> int:
        """How many of those in the way wait themselves."""
        return sum(conflict.row.proof is None for conflict in self.conflicts)


class ChangedReservation(ReservationOutcome, frozen=True, kw_only=True):
    """The reservation after a heartbeat, a release or an extension."""


class Reserve(Command[Outcome], frozen=True, kw_only=True):
    """Reserve all paths of a request, or none; a caller that may wait joins those that wait."""

    claims = Reservation.noun
    by: Principal
    request: Request
    reservation_id: str
    lease_id: str
    session_lease_id: str | None = None
    waiting_id: str | None = None
    """The place that an earlier call of the caller kept."""
    may_wait: bool = False

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns asked for."""
        return tuple(map(parse, self.request.paths))

    def needs(self) -> Needs:
        """The caller's own row, its session, and every reservation that may be in the way."""
        rows = [
            (Reservation.table, self.account, row_id) for row_id in (self.reservation_id, self.waiting_id) if row_id
        ]
        if self.request.session is not None:
            rows.append((Session.table, self.account, self.request.session))
        return Needs(rows=tuple(rows), paths=paths_needed(self.account, self.request.space, self.patterns))

    def weight(self) -> int:
        """As many rows as paths."""
        return len(self.request.paths)

    def size(self) -> int:
        """The size of its texts."""
        return sum(map(len, self.request.paths)) + len(self.request.metadata or "")

    def space_waited_for(self) -> tuple[str, str] | None:
        """The space in which the caller may wait."""
        return (self.account, self.request.space)

    def give_back(self, outcome: Outcome) -> Command[ChangedReservation] | None:
        """Release what was reserved, unless the caller can repeat its call with its Idempotency-Key."""
        if not isinstance(outcome, Reserved) or self.once is not None:
            return None
        return ReleaseReservation(
            account=self.account,
            cause=self.cause,
            reservation_id=outcome.row.id,
            lease_id=outcome.lease_id,
            how=UNDELIVERED,
        )

    def decide(self, view: View) -> Reserved | Obstructed:
        """The reservation, or what is in the way."""
        check_session(view, self.account, self.request.session, self.by, self.session_lease_id)
        own = self._own_wait(view)
        arrived_at = None if own is None else own.arrived_at
        others = [
            row for row in live_in_space(view, self.account, self.request.space) if own is None or row.id != own.id
        ]
        patterns = self.patterns
        found = holding.conflicts(patterns, self.request.mode, others, arrived_at=arrived_at, now=view.now)
        if not found:
            return self._grant(view, own, others, patterns)
        if own is not None and not self.may_wait:
            view.touch(replace(own, waits_until=view.now + PLACE_LIFETIME))
        elif own is None and self.may_wait:
            self._check_room(view, others, patterns, waits=True)
            own = view.put(holding.wait(self.account, self.reservation_id, self.request, others, view.now), "waiting")
        conflicts = holding.describe(patterns, map(view.effective, found))
        kept = None if own is None or self.may_wait else own.id
        return Obstructed(row=own, conflicts=conflicts, now=view.now, waiting_id=kept)

    def replay(self, view: View, answer: Answer) -> Reserved:
        """The same reservation as it is now; a replay never extends it.

        It was loaded if it is open, because it has the paths of this request.
        """
        first = msgspec.json.decode(answer.body)
        if view.find(Reservation, self.account, first["reservation_id"]) is None:
            raise LeaseLost("your reservation is over", reservation_id=first["reservation_id"])
        row = find_held(view, self.account, first["reservation_id"], first["lease_id"])
        return Reserved(row=view.effective(row), now=view.now, lease_id=first["lease_id"], replayed=True)

    def _own_wait(self, view: View) -> Reservation | None:
        """The row by which the caller waits already: in this call, or kept since an earlier one."""
        for row_id in (self.reservation_id, self.waiting_id):
            row = view.find(Reservation, self.account, row_id) if row_id else None
            if row is not None and row_id == self.reservation_id and row.ended_reason == CALLER_LEFT:
                raise ReservationMissing("the caller of this wait has left")
            if row is not None and holding.is_same_wait(row, self.request, view.now):
                return row
        return None

    def _grant(
        self, view: View, own: Reservation | None, others: list[Reservation], patterns: tuple[Pattern, ...]
    ) -> Reserved:
        self._check_room(view, others, patterns, waits=False)
        row = own or Reservation(self.account, self.reservation_id)
        granted = holding.grant(row, self.request, proof=proof_of(self.lease_id), token=view.token(), now=view.now)
        lease_id = self.lease_id
        if self.request.session is not None and self.session_lease_id is not None:
            lease_id = held_lease_id(self.session_lease_id, granted)
            granted = replace(granted, proof=proof_of(lease_id))
        return Reserved(row=view.effective(view.put(granted, "reserved")), now=view.now, lease_id=lease_id)

    def _check_room(self, view: View, others: list[Reservation], patterns: tuple[Pattern, ...], *, waits: bool) -> None:
        holding.check_room(view.space_use(self.account, self.request.space), waits=waits)
        holding.check_broad(patterns, others, view.now, waits=waits)


class ReservationCommand(Command[ChangedReservation], frozen=True, kw_only=True):
    """A command about one reservation."""

    urgent = True
    reservation_id: str

    def needs(self) -> Needs:
        """The reservation."""
        return Needs(rows=((Reservation.table, self.account, self.reservation_id),))

    def changed(self, view: View, row: Reservation) -> ChangedReservation:
        """The outcome."""
        return ChangedReservation(row=view.effective(row), now=view.now)


class HolderOfReservation(ReservationCommand, frozen=True, kw_only=True):
    """A write by the holder; the lease id is its proof."""

    lease_id: str
    token: int | None = None

    def find_held(self, view: View) -> Reservation:
        """The caller's reservation, or LeaseLost."""
        row = find_held(view, self.account, self.reservation_id, self.lease_id)
        if self.token is not None and self.token != row.token:
            raise WrongToken(f"the lease is yours, but its token is not {self.token}", reservation_id=row.id)
        return row


class HeartbeatReservation(HolderOfReservation, frozen=True, kw_only=True):
    """Renew the lease."""

    ttl: Instant | None = None

    @property
    def stores_answer(self) -> bool:
        """Never: renewing twice is renewing once."""
        return False

    def decide(self, view: View) -> ChangedReservation:
        """The deadline moves to a full TTL from now."""
        renewed = holding.renew(self.find_held(view), ttl=self.ttl, now=view.now)
        return self.changed(view, view.put(renewed, "renewed"))


class ReleaseReservation(HolderOfReservation, frozen=True, kw_only=True):
    """Release all paths, or some of them."""

    paths: tuple[str, ...] = ()
    """The patterns to release; none means all."""
    how: str = RELEASED

    def decide(self, view: View) -> ChangedReservation:
        """The reservation with fewer paths, or ended."""
        row = self.find_held(view)
        left = holding.remove_paths(row, self.paths)
        if self.paths and paths_of(left):
            return self.changed(view, view.put(left, "reduced"))
        return self.changed(view, view.put(holding.end(row, self.how, now=view.now), self.how))


class ExtendReservation(HolderOfReservation, frozen=True, kw_only=True):
    """Add paths, all or none. It never waits: two holders that extend can then not wait for each other."""

    space: str
    paths: tuple[str, ...]

    def needs(self) -> Needs:
        """The reservation, and everything that may be in the way of the new paths."""
        patterns = [parse(path) for path in self.paths]
        return replace(super().needs(), paths=paths_needed(self.account, self.space, patterns))

    def decide(self, view: View) -> ChangedReservation | Obstructed:  # type: ignore[override]
        """The reservation with the new paths, or what is in their way."""
        row = self.find_held(view)
        patterns = [parse(path) for path in self.paths]
        others = [other for other in live_in_space(view, self.account, row.space) if other.id != row.id]
        found = holding.conflicts(patterns, row.mode, others, arrived_at=None, now=view.now)
        if found:
            return Obstructed(conflicts=holding.describe(patterns, map(view.effective, found)), now=view.now)
        holding.check_broad(patterns, others, view.now, waits=False)
        return self.changed(view, view.put(holding.add_paths(row, self.paths), "enlarged"))


class ForceReleaseReservation(ReservationCommand, frozen=True, kw_only=True):
    """An administrator takes the paths from their holder."""

    by: str
    reason: str

    def decide(self, view: View) -> ChangedReservation:
        """The ended reservation; the former holder's next call reports who took it and why."""
        row = view.find(Reservation, self.account, self.reservation_id)
        if row is None:
            raise ReservationMissing("there is no such reservation")
        row = expire_reservation_if_due(view, row)
        if not is_held(row):
            raise NotHeld("the reservation has no holder")
        ended = holding.end(row, FORCED, now=view.now, by=self.by, reason=self.reason)
        return self.changed(view, view.put(ended, FORCED))


class RefreshWaits(Command[bool], frozen=True, kw_only=True):
    """Show that callers still wait, or keep their places for a while."""

    urgent = True
    waits_for_locks = False
    reservation_ids: tuple[str, ...]
    lifetime: Instant

    def needs(self) -> Needs:
        """Their rows."""
        return Needs(rows=tuple((Reservation.table, self.account, row_id) for row_id in self.reservation_ids))

    def weight(self) -> int:
        """As many rows as callers."""
        return len(self.reservation_ids)

    def decide(self, view: View) -> bool:
        """Whether any of them waits."""
        rows = (view.find(Reservation, self.account, row_id) for row_id in self.reservation_ids)
        waiting = [row for row in rows if row is not None and is_waiting(row, view.now)]
        for row in waiting:
            view.touch(replace(row, waits_until=max(row.waits_until or 0, view.now + self.lifetime)))
        return bool(waiting)


class LeaveWait(ReservationCommand, frozen=True, kw_only=True):
    """End the wait of a caller that has gone; does nothing if it was served meanwhile."""

    waits_for_locks = False

    def decide(self, view: View) -> ChangedReservation:
        """The row after its wait."""
        row = view.find(Reservation, self.account, self.reservation_id)
        if row is None:
            raise ReservationMissing("there is no such reservation")
        if row.waits_until is not None:
            row = view.put(holding.end(row, LEFT, now=view.now, reason=CALLER_LEFT), LEFT)
        return ChangedReservation(row=row, now=view.now)


def paths_needed(account: str, space: str, patterns: Sequence[Pattern]) -> tuple[tuple[str, str, str, bool], ...]:
    """Where reservations lie that may meet these patterns."""
    return tuple({(account, space, pattern.prefix, not pattern.is_literal) for pattern in patterns})


def live_in_space(view: View, account: str, space: str) -> list[Reservation]:
    """The loaded reservations of a space, after those that are due were ended."""
    rows = (expire_reservation_if_due(view, row) for row in view.open_reservations(account, space))
    return [row for row in rows if row.ended_at is None]


def find_held(view: View, account: str, reservation_id: str, lease_id: str) -> Reservation:
    """The reservation that this lease id holds, or a refusal that says what happened to it."""
    row = view.find(Reservation, account, reservation_id)
    if row is None:
        raise ReservationMissing("there is no such reservation")
    holding.check_holder(row, proof_of(lease_id), view.now)
    if row.session is not None:
        session = view.find(Session, account, row.session)
        if session is None or not sessions.is_live(session, view.now):
            raise LeaseLost(
                "the session that held the reservation is over", reservation_id=row.id, ended="session_ended"
            )
    return row


def check_session(
    view: View, account: str, session_id: str | None, by: Principal, session_lease_id: str | None
) -> None:
    """Refuse a claim for a session that is over, or that is not the caller's."""
    if session_id is not None:
        proof = None if session_lease_id is None else proof_of(session_lease_id)
        sessions.check_claimer(view.find(Session, account, session_id), by.id, proof, view.now)
