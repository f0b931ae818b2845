"""Claims of files: a new reservation, or one that its holder has offered."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast.core import offer as offers
from holdfast.core import session as sessions
from holdfast.core.errors import LeaseLost, ReservationMissing
from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.lease import UNDELIVERED, proof_of
from holdfast.core.principal import Principal
from holdfast.core.reservation import lifecycle
from holdfast.core.reservation.patterns import Pattern, parse
from holdfast.core.reservation.row import PLACE_LIFETIME, Request, Reservation
from holdfast.core.row import Instant, Key
from holdfast.core.session import Session
from holdfast.engine.command import Command, Outcome
from holdfast.engine.expiry import expire_reservation_if_due
from holdfast.engine.session_renewal import ActingSession
from holdfast.engine.verbs.reservations import (
    CALLER_LEFT,
    ChangedReservation,
    FilesHeld,
    ReleaseReservation,
    ReservationOutcome,
    check_held,
    find_reservation,
    live_in_space,
    paths_needed,
)
from holdfast.engine.view import View
from holdfast.store.changes import Answer
from holdfast.store.needs import Needs


class Reserved(ReservationOutcome, frozen=True, kw_only=True):
    """The caller holds the paths now. Only this answer contains the lease id."""

    lease_id: str
    replayed: bool = False


class ClaimingFiles(Command[Outcome], frozen=True, kw_only=True):
    """A claim of files."""

    claims = Reservation.noun
    by: Principal
    reservation_id: str
    lease_id: str
    """The lease id of a claim without `session_lease_id`."""
    session_lease_id: str | None = None

    def claimed_for(self) -> str | None:
        """The session that it claims for."""
        raise NotImplementedError  # pragma: no cover - every claim has its own

    def acting_session(self) -> ActingSession | None:
        """The session to claim for, if its lease id was sent as well."""
        session_id = self.claimed_for()
        if session_id is None or self.session_lease_id is None:
            return None
        return ActingSession(self.by.id, session_id, self.session_lease_id)

    def session_key(self, session_id: str | None) -> tuple[Key, ...]:
        """The session that it claims for."""
        return () if session_id is None else ((Session.table, self.account, session_id),)

    def check_session(self, view: View, session_id: str | None) -> Session | None:
        """The session to claim for; refuses one that is over, or that is not the caller's."""
        if session_id is None:
            return None
        proof = None if self.session_lease_id is None else proof_of(self.session_lease_id)
        return sessions.check_claimer(view.find(Session, self.account, session_id), self.by.id, proof, view.now)

    def granted(self, view: View, row: Reservation, verb: str) -> Reserved:
        """Save what was granted. With the session's lease id, the lease id can be computed again."""
        lease_id = self.lease_id
        if row.session is not None and self.session_lease_id is not None:
            lease_id = held_lease_id(self.session_lease_id, row)
            row = replace(row, proof=proof_of(lease_id))
        return Reserved(row=view.effective(view.put(row, verb)), now=view.now, lease_id=lease_id)

    def give_back(self, outcome: Outcome) -> Command[ChangedReservation] | None:
        """Release what was granted, unless the caller can repeat its call with its Idempotency-Key."""
        if not isinstance(outcome, Reserved) or self.once is not None:
            return None
        return ReleaseReservation(
            account=self.account,
            cause=self.cause,
            reservation_id=outcome.row.id,
            lease_id=outcome.lease_id,
            how=UNDELIVERED,
        )

    def replay(self, view: View, answer: Answer) -> Reserved:
        """The same reservation as it is now; a replay never extends it.

        It was loaded if it is open and still has one of the paths of this request.
        """
        first = msgspec.json.decode(answer.body)
        found = view.find(Reservation, self.account, first["reservation_id"])
        if found is None:
            message = "your reservation is over, or has none of these paths any more"
            raise LeaseLost(message, reservation_id=first["reservation_id"])
        row = offers.without_past_offer(found, view.now)
        check_held(view, row, first["lease_id"])
        return Reserved(row=view.effective(row), now=view.now, lease_id=first["lease_id"], replayed=True)


class Reserve(ClaimingFiles, frozen=True, kw_only=True):
    """Reserve all paths of a request, or none; a caller that may wait joins those that wait."""

    request: Request
    waiting_id: str | None = None
    """The place that an earlier call of the caller kept."""
    may_wait: bool = False

    def claimed_for(self) -> str | None:
        """The session that it claims for."""
        return self.request.session

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns asked for."""
        return tuple(map(parse, self.request.paths))

    def needs(self) -> Needs:
        """The caller's own row, its session, and every reservation that may conflict."""
        ids = (row_id for row_id in (self.reservation_id, self.waiting_id) if row_id)
        rows = (*((Reservation.table, self.account, row_id) for row_id in ids), *self.session_key(self.request.session))
        return Needs(rows=rows, paths=paths_needed(self.account, self.request.space, self.patterns))

    def weight(self) -> int:
        """As many rows as paths."""
        return len(self.request.paths)

    def size(self) -> int:
        """The size of its texts."""
        return sum(map(len, self.request.paths)) + len(self.request.metadata or "")

    def space_waited_for(self) -> tuple[str, str] | None:
        """The space in which the caller may wait."""
        return (self.account, self.request.space)

    def decide(self, view: View) -> Reserved | FilesHeld:
        """The reservation, or what conflicts."""
        self.check_session(view, self.request.session)
        own = self._own_wait(view)
        arrived_at = None if own is None else own.arrived_at
        patterns = self.patterns
        found_here = live_in_space(view, self.account, self.request.space, patterns)
        others = [row for row in found_here if own is None or row.id != own.id]
        found = lifecycle.conflicts(patterns, self.request.mode, others, arrived_at=arrived_at, now=view.now)
        if not found:
            return self._grant(view, own, others, patterns)
        if own is not None and not self.may_wait:
            view.touch(replace(own, waits_until=view.now + PLACE_LIFETIME))
        elif own is None and self.may_wait:
            self._check_room(view, others, patterns, waits=True)
            own = view.put(lifecycle.wait(self.account, self.reservation_id, self.request, others, view.now), "waiting")
        conflicts = lifecycle.describe(patterns, map(view.effective, found))
        kept = None if own is None or self.may_wait else own.id
        return FilesHeld(row=own, conflicts=conflicts, now=view.now, waiting_id=kept)

    def _own_wait(self, view: View) -> Reservation | None:
        """The row by which the caller waits already: in this call, or kept since an earlier one."""
        for row_id in (self.reservation_id, self.waiting_id):
            row = view.find(Reservation, self.account, row_id) if row_id else None
            if row is not None and row_id == self.reservation_id and row.ended_reason == CALLER_LEFT:
                raise ReservationMissing("the caller of this wait has left")
            if row is not None and lifecycle.is_same_wait(row, self.request, view.now):
                return row
        return None

    def _grant(
        self, view: View, own: Reservation | None, others: list[Reservation], patterns: tuple[Pattern, ...]
    ) -> Reserved:
        self._check_room(view, others, patterns, waits=False)
        row = own or Reservation(self.account, self.reservation_id)
        granted = lifecycle.grant(row, self.request, proof=proof_of(self.lease_id), token=view.token(), now=view.now)
        return self.granted(view, granted, "reserved")

    def _check_room(self, view: View, others: list[Reservation], patterns: tuple[Pattern, ...], *, waits: bool) -> None:
        lifecycle.check_room(view.space_use(self.account, self.request.space), waits=waits)
        lifecycle.check_broad(patterns, others, view.now, waits=waits)


class TakeReservation(ClaimingFiles, frozen=True, kw_only=True):
    """Take over a reservation from its holder, with the code of its offer."""

    code: str
    owner: str
    ttl: Instant
    session_id: str | None = None

    def claimed_for(self) -> str | None:
        """The session that it claims for."""
        return self.session_id

    def needs(self) -> Needs:
        """The reservation, and the session that it is claimed for."""
        own: Key = (Reservation.table, self.account, self.reservation_id)
        return Needs(rows=(own, *self.session_key(self.session_id)))

    def decide(self, view: View) -> Reserved:
        """The reservation under a new lease id and a larger token, or a refusal of the code."""
        session = self.check_session(view, self.session_id)
        row = expire_reservation_if_due(view, find_reservation(view, self.account, self.reservation_id))
        offers.check_code(row, proof_of(self.code), None if session is None else session.name, view.now)
        taken = lifecycle.hand_over(
            row,
            owner=self.owner,
            principal=self.by.id,
            session=self.session_id,
            ttl=self.ttl,
            proof=proof_of(self.lease_id),
            token=view.token(),
            now=view.now,
        )
        return self.granted(view, taken, offers.HANDED_OVER)
