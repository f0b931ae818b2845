"""Waiters for reservations. Their order is in the store, where each is a row, so that it holds across servers.

A ticket tries again when a conflicting reservation ends or gets fewer paths, whether this process or another one
committed that. While the ticket waits, its server renews the row every two seconds. A row that was not renewed for
six seconds does not count any more: its server has crashed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from holdfast.core.errors import HoldfastError
from holdfast.core.event import Cause
from holdfast.core.reservation.row import PLACE_LIFETIME, WAIT_LIFETIME, Reservation
from holdfast.core.row import Instant
from holdfast.engine.command import Command, Outcome
from holdfast.engine.ticket import Ticket
from holdfast.engine.timer import Timer
from holdfast.engine.verbs.reservation_claims import Reserved
from holdfast.engine.verbs.reservations import FilesHeld, LeaveWait, RefreshWaits
from holdfast.engine.waiting.waiters import Deliver, SetWaiting, Submit, Waiters

REFRESH_SECONDS = 2.0
MAX_REFRESHED = 200
"""Rows that one command refreshes."""
_CAUSE = Cause("waiting", "")

Space = tuple[str, str]
"""(account, space)."""


class ReservationWaiters(Waiters):
    """Every caller of this process that waits for a reservation."""

    def __init__(
        self,
        submit: Submit,
        deliver: Deliver,
        set_waiting: SetWaiting,
        timer: Timer,
        make_ticket: Callable[[Command[Any]], Ticket],
    ) -> None:
        super().__init__(submit, deliver, set_waiting, timer)
        self._spaces: dict[Space, dict[Ticket, None]] = {}
        self._make_ticket = make_ticket
        """Makes a ticket for a command whose outcome nobody needs."""
        self._is_refreshing = False

    def handle_not_granted(self, ticket: Ticket, outcome: Outcome) -> None:
        """Remember what conflicts, then wait or give up."""
        assert isinstance(outcome, FilesHeld)
        ticket.conflicting_ids = frozenset(conflict.row.id for conflict in outcome.conflicts)
        ticket.place = outcome.row.id if outcome.row is not None else ticket.place
        try:
            super().handle_not_granted(ticket, outcome)
        except HoldfastError:  # it may not wait here
            self._submit_all([self._leave_row(ticket)])
            raise
        if ticket.is_caller_gone and ticket.place is not None:  # it left while its claim was in the engine
            self._submit_all([self._leave_row(ticket)])

    def wake(self, freed: Iterable[Reservation]) -> None:
        """Let those try again that conflict with one of these reservations."""
        with self._lock:
            woken = [
                ticket
                for row in freed
                for ticket in self._spaces.get((row.account, row.space), ())
                if self._may_try(ticket, row.id)
            ]
        self._submit_all(woken)

    def wake_all(self) -> None:
        """Let everybody try: another process may have ended any reservation."""
        with self._lock:
            woken = [ticket for ticket in self._tickets() if self._may_try(ticket, None)]
        self._submit_all(woken)

    def length(self, row: Reservation) -> int:
        """How many wait for a reservation in this process."""
        with self._lock:
            waiting = self._spaces.get((row.account, row.space), ())
            return sum(row.id in ticket.conflicting_ids for ticket in waiting)

    def drain(self) -> None:
        """Answer every waiter, and end its wait for the other servers too; a claim in the engine is answered first."""
        with self._lock:
            waiting = list(self._tickets())
        super().drain()
        with self._lock:
            left = [ticket for ticket in waiting if not ticket.is_submitted and ticket.place is not None]
            leaving = [self._leave_row(ticket) for ticket in left]
        self._submit_all(leaving)

    def _may_try(self, ticket: Ticket, freed: str | None) -> bool:
        """Whether to submit a ticket now that a reservation, or perhaps any, is out of the way."""
        if ticket.is_submitted:
            ticket.try_again = True
            return False
        if freed is not None and freed not in ticket.conflicting_ids:
            return False
        ticket.is_submitted = True
        return True

    def _tickets(self) -> Iterator[Ticket]:
        return (ticket for space in self._spaces.values() for ticket in space)

    def _enqueue(self, ticket: Ticket) -> list[Ticket]:
        assert ticket.space is not None
        self._spaces.setdefault(ticket.space, {})[ticket] = None
        self._refresh_later()
        # What ended after the answer and before the ticket waited woke nobody: try once more.
        ticket.is_submitted, ticket.try_again = True, False
        return [ticket]

    def _dequeue(self, ticket: Ticket) -> list[Ticket]:
        assert ticket.space is not None
        waiting = self._spaces[ticket.space]
        del waiting[ticket]
        if not waiting:
            del self._spaces[ticket.space]
        if ticket.place is None:
            return []
        if ticket.is_last_try and not ticket.is_caller_gone and not self._draining:
            return [self._refresh_ticket(ticket.command.account, (ticket.place,), PLACE_LIFETIME)]
        return [self._leave_row(ticket)]

    def _keep_waiting(self, ticket: Ticket) -> list[Ticket]:
        ticket.is_submitted, ticket.try_again = ticket.try_again, False
        return [ticket] if ticket.is_submitted else []

    def _last_answer(self, ticket: Ticket, outcome: Outcome) -> Outcome:
        """The answer, with the id of the row that keeps the caller's place."""
        return replace(outcome, waiting_id=ticket.place) if isinstance(outcome, FilesHeld) else outcome

    def _settle(self, ticket: Ticket, outcome: Any) -> list[Ticket]:
        """Remove a ticket; one that was not granted its own row waits no more in the store either."""
        place, ticket.place = ticket.place, None
        tries = self._remove(ticket)
        if place is not None and not (isinstance(outcome, Reserved) and outcome.row.id == place):
            ticket.place = place
            tries.append(self._leave_row(ticket))
        return tries

    def _clear_wakeup(self, ticket: Ticket) -> None:
        """Do nothing: a ticket is not woken for anything in particular."""

    def _mark_out_of_turn(self, ticket: Ticket) -> None:
        """Do nothing: `is_submitted` of the ticket is the only record."""

    def _leave_row(self, ticket: Ticket) -> Ticket:
        assert ticket.place is not None
        return self._make_ticket(
            LeaveWait(account=ticket.command.account, cause=ticket.command.cause, reservation_id=ticket.place)
        )

    def _refresh_ticket(self, account: str, rows: tuple[str, ...], lifetime: Instant) -> Ticket:
        command = RefreshWaits(account=account, cause=_CAUSE, reservation_ids=rows, lifetime=lifetime)
        return self._make_ticket(command)

    def _refresh_later(self) -> None:
        if not self._is_refreshing:
            self._is_refreshing = True
            self._timer.at(time.monotonic() + REFRESH_SECONDS, self._refresh)

    def _refresh(self) -> None:
        """Show that everybody here still waits."""
        with self._lock:
            self._is_refreshing = False
            rows: dict[str, list[str]] = {}
            for ticket in self._tickets():
                if ticket.place is not None:
                    rows.setdefault(ticket.command.account, []).append(ticket.place)
            if self._spaces:
                self._refresh_later()
        self._submit_all(
            [
                self._refresh_ticket(account, tuple(places[first : first + MAX_REFRESHED]), WAIT_LIFETIME)
                for account, places in rows.items()
                for first in range(0, len(places), MAX_REFRESHED)
            ]
        )
