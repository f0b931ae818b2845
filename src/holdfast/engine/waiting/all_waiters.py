"""The waiters of every kind: which of them a ticket belongs to, and what wakes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.core.errors import HoldfastError
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND, Instant
from holdfast.engine.batches.transaction import Committed, Effects
from holdfast.engine.command import Command, Held, Outcome
from holdfast.engine.ticket import Ticket, deliver
from holdfast.engine.timer import Timer
from holdfast.engine.verbs.reservations import FilesHeld
from holdfast.engine.waiting.names import NameWaiters
from holdfast.engine.waiting.reservations import ReservationWaiters
from holdfast.engine.waiting.tasks import TaskWaiters
from holdfast.engine.waiting.waiters import Submit, Waiters

SetKind = Callable[..., None]
"""Sets whether callers of a kind wait."""
Expect = Callable[[Instant, Instant], None]
"""Wakes the sweep in time for a deadline: (deadline, now)."""


class AllWaiters:
    """Callers that wait for names, for tasks and for reservations."""

    def __init__(
        self, submit: Submit, set_waiting: SetKind, timer: Timer, make_ticket: Callable[[Command[Any]], Ticket]
    ) -> None:
        self.names = NameWaiters(submit, deliver, partial(set_waiting, "names"), timer)
        self.tasks = TaskWaiters(submit, deliver, partial(set_waiting, "tasks"), timer)
        self.reservations = ReservationWaiters(
            submit, deliver, partial(set_waiting, "reservations"), timer, make_ticket
        )
        self._all: tuple[Waiters, ...] = (self.names, self.tasks, self.reservations)

    def of(self, ticket: Ticket) -> Waiters | None:
        """The waiters that a ticket may join; None if it may not wait."""
        if ticket.queues:
            return self.tasks
        if ticket.wait_keys:
            return self.names
        return None if ticket.space is None else self.reservations

    def handle(self, ticket: Ticket, outcome: Any, committed: Committed, expect: Expect) -> list[tuple[Ticket, Any]]:
        """Let a ticket wait, or let it leave because its claim is decided; returns what to answer now."""
        waiters = self.of(ticket)
        if waiters is None:
            return [(ticket, self.names.with_length(outcome) if isinstance(outcome, Held) else outcome)]
        if not isinstance(outcome, Outcome) or not outcome.waits:
            waiters.handle_settled(ticket, outcome)
            return [(ticket, outcome)]
        is_new = not ticket.is_waiting
        try:
            waiters.handle_not_granted(ticket, outcome)
        except HoldfastError as error:
            return [(ticket, error)]
        if isinstance(outcome, Held):
            self._follow_names(ticket, outcome, committed, expect, is_new=is_new)
        elif isinstance(outcome, FilesHeld):
            for conflict in outcome.conflicts:
                if conflict.row.expires_at is not None:
                    expect(conflict.row.expires_at, committed.now)
        return []

    def _follow_names(
        self, ticket: Ticket, outcome: Held, committed: Committed, expect: Expect, *, is_new: bool
    ) -> None:
        """Make sure that the heads of queues try when the holders' leases expire, and when a name is free again."""
        if is_new:
            # A release after the answer and before the ticket joined the queue woke no ticket: try once more.
            self.names.wake([key for key in ticket.wait_keys if self.names.length(key) == 1])
        for lease in outcome.leases:
            if lease.expires_at is not None:
                expect(lease.expires_at, committed.now)
            elif free_at := max(lease.available_at or 0, lease.done_until or 0):  # that comes without a commit
                self.names.wake_later(lease.key, (free_at - committed.now) / SECOND)

    def wake(self, effects: Effects) -> None:
        """Wake those that a committed batch concerns."""
        if effects.freed:
            self.names.wake(effects.freed)
        if effects.offered:
            self.tasks.offer(effects.offered, effects.failing_workers)
        if effects.reopened:
            self.tasks.reopen(effects.reopened)
        if effects.freed_reservations:
            self.reservations.wake(effects.freed_reservations)

    def wake_all(self) -> None:
        """Wake everybody that another process's commit may concern."""
        self.names.wake_all()
        self.tasks.probe()
        self.reservations.wake_all()

    def answer(self, ticket: Ticket, outcome: Any) -> None:
        """Answer a ticket that could not be submitted again."""
        waiters = self.of(ticket)
        if waiters is not None:
            waiters.handle_settled(ticket, outcome)
        deliver([(ticket, outcome)])

    def drain(self) -> None:
        """Answer every waiting caller that the server is shutting down."""
        for waiters in self._all:
            waiters.drain()

    def end_waits(self, principal: Principal, now: Instant) -> None:
        """End the waits of a principal whose key changed, unless they were begun with a key that still works."""
        for waiters in self._all:
            waiters.end_waits(principal, now)

    def leave(self, ticket: Ticket) -> None:
        """Remove a ticket whose caller disconnected."""
        waiters = self.of(ticket)
        if waiters is not None:
            waiters.leave(ticket)
