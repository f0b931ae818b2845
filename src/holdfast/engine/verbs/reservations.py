"""Commands of reservations: reserve, and what a holder or an administrator does with what is reserved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from msgspec.structs import replace

from holdfast.core import offer as offers
from holdfast.core import session as sessions
from holdfast.core.errors import LeaseLost, NotHeld, ReservationMissing, WrongToken
from holdfast.core.lease import FORCED, RELEASED, is_held, proof_of
from holdfast.core.reservation import lifecycle
from holdfast.core.reservation.lifecycle import Conflict
from holdfast.core.reservation.patterns import Pattern, parse
from holdfast.core.reservation.row import LEFT, Reservation, is_waiting, paths_of
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.engine.batches.steps import with_token
from holdfast.engine.command import Command, Outcome
from holdfast.engine.expiry import expire_reservation_if_due
from holdfast.engine.session_renewal import ActingSession
from holdfast.engine.view import View
from holdfast.store.needs import Needs

CALLER_LEFT = "the caller left"
"""Why a wait ended that nobody may continue. One that was not renewed may be begun again by its caller."""


class ReservationOutcome(Outcome, frozen=True, kw_only=True):
    """A reservation after a command."""

    row: Reservation

    def with_tokens(self, tokens: list[int]) -> Self:
        """The outcome with the token drawn for it."""
        return self if self.row.token >= 0 else replace(self, row=with_token(self.row, tokens))


class FilesHeld(Outcome, frozen=True, kw_only=True):
    """Others hold paths that overlap the caller's, or wait for them and came first."""

    waits = True
    row: Reservation | None = None
    """The caller's own row, if it waits."""
    conflicts: tuple[Conflict, ...]
    waiting_id: str | None = None
    """Keeps the caller's place for a while, if it waited for as long as it wanted to."""

    @property
    def waiting(self) -> int:
        """How many of the conflicting ones wait themselves."""
        return sum(conflict.row.proof is None for conflict in self.conflicts)


class ChangedReservation(ReservationOutcome, frozen=True, kw_only=True):
    """The reservation after a heartbeat, a release or an extension."""


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
    session: ActingSession | None = None
    """The session that it is sent for."""

    def acting_session(self) -> ActingSession | None:
        """The session that it is sent for."""
        return self.session

    def find_held(self, view: View) -> Reservation:
        """The caller's reservation, or LeaseLost."""
        row = self.stored(view)
        check_held(view, row, self.lease_id)
        if self.token is not None and self.token != row.token:
            raise WrongToken(f"the lease is yours, but its token is not {self.token}", reservation_id=row.id)
        return row

    def stored(self, view: View) -> Reservation:
        """The reservation; after the end of its offer it belongs to its session again."""
        return offers.without_past_offer(find_reservation(view, self.account, self.reservation_id), view.now)


class HeartbeatReservation(HolderOfReservation, frozen=True, kw_only=True):
    """Renew the lease."""

    ttl: Instant | None = None

    @property
    def stores_answer(self) -> bool:
        """Never: repeating a renewal is harmless."""
        return False

    def decide(self, view: View) -> ChangedReservation:
        """The deadline moves to a full TTL from now."""
        renewed = lifecycle.renew(self.find_held(view), ttl=self.ttl, now=view.now)
        return self.changed(view, view.put(renewed, "renewed"))


class ReleaseReservation(HolderOfReservation, frozen=True, kw_only=True):
    """Release all paths, or some of them."""

    paths: tuple[str, ...] = ()
    """The patterns to release; none means all."""
    how: str = RELEASED

    def decide(self, view: View) -> ChangedReservation:
        """The reservation with fewer paths, or ended."""
        row = self.find_held(view)
        left = lifecycle.remove_paths(row, self.paths)
        if self.paths and paths_of(left):
            return self.changed(view, view.put(left, "reduced"))
        return self.changed(view, view.put(lifecycle.end(row, self.how, now=view.now), self.how))


class ExtendReservation(HolderOfReservation, frozen=True, kw_only=True):
    """Add paths, all or none. It never waits: two holders that extend can then not wait for each other."""

    space: str
    paths: tuple[str, ...]

    def needs(self) -> Needs:
        """The reservation, and everything that may conflict with the new paths."""
        patterns = [parse(path) for path in self.paths]
        return replace(super().needs(), paths=paths_needed(self.account, self.space, patterns))

    def decide(self, view: View) -> ChangedReservation | FilesHeld:  # type: ignore[override]
        """The reservation with the new paths, or what conflicts with them."""
        row = self.find_held(view)
        patterns = [parse(path) for path in self.paths]
        others = [other for other in live_in_space(view, self.account, row.space, patterns) if other.id != row.id]
        found = lifecycle.conflicts(patterns, row.mode, others, arrived_at=None, now=view.now)
        if found:
            return FilesHeld(conflicts=lifecycle.describe(patterns, map(view.effective, found)), now=view.now)
        lifecycle.check_broad(patterns, others, view.now, waits=False)
        return self.changed(view, view.put(lifecycle.add_paths(row, self.paths), "enlarged"))


class ForceReleaseReservation(ReservationCommand, frozen=True, kw_only=True):
    """An administrator takes the paths from their holder."""

    by: str
    reason: str

    def decide(self, view: View) -> ChangedReservation:
        """The ended reservation; the former holder's next call reports who took it and why."""
        row = find_reservation(view, self.account, self.reservation_id)
        row = expire_reservation_if_due(view, row)
        if not is_held(row):
            raise NotHeld("the reservation has no holder")
        ended = lifecycle.end(row, FORCED, now=view.now, by=self.by, reason=self.reason)
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
        row = find_reservation(view, self.account, self.reservation_id)
        if row.waits_until is not None:
            row = view.put(lifecycle.end(row, LEFT, now=view.now, reason=CALLER_LEFT), LEFT)
        return ChangedReservation(row=row, now=view.now)


def paths_needed(account: str, space: str, patterns: Sequence[Pattern]) -> tuple[tuple[str, str, str, bool], ...]:
    """Where reservations lie that may overlap these patterns."""
    return tuple({(account, space, pattern.prefix, not pattern.is_literal) for pattern in patterns})


def live_in_space(view: View, account: str, space: str, patterns: Sequence[Pattern]) -> list[Reservation]:
    """The loaded reservations of a space, after those that are due were ended."""
    rows = (expire_reservation_if_due(view, row) for row in view.open_reservations(account, space, patterns))
    return [row for row in rows if row.ended_at is None]


def find_reservation(view: View, account: str, reservation_id: str) -> Reservation:
    """The reservation with this id, or a refusal."""
    row = view.find(Reservation, account, reservation_id)
    if row is None:
        raise ReservationMissing("there is no such reservation")
    return row


def check_held(view: View, row: Reservation, lease_id: str) -> None:
    """Refuse everybody but the live holder, and report what happened to the reservation."""
    lifecycle.check_holder(row, proof_of(lease_id), view.now)
    if row.session is not None:
        session = view.find(Session, row.account, row.session)
        if session is None or not sessions.is_live(session, view.now):
            raise LeaseLost(
                "the session that held the reservation is over", reservation_id=row.id, ended="session_ended"
            )
