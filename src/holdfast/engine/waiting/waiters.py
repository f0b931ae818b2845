"""Waiters: tickets whose claim was not granted and whose callers are willing to wait.

Waiting happens outside the batch and holds no row. A waiting ticket leaves when its claim is granted or refused for
good, when its deadline has passed and one last try brought nothing, when its caller disconnects, or when the server
drains. A wake-up carries no data: the woken claim runs again, and the store decides.

This is the base class of the waiters for names and for tasks. Its subclasses keep the queues and choose the tickets
that try next: their methods run under the lock and return the tickets to submit after the lock is released.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from holdfast.core.errors import Draining
from holdfast.engine.command import Outcome
from holdfast.engine.ticket import Ticket
from holdfast.engine.timer import Timer

Submit = Callable[[Ticket], None]
Deliver = Callable[[list[tuple[Ticket, Any]]], None]


class SetWaiting(Protocol):
    """Called when the first ticket starts to wait and when the last one has left."""

    def __call__(self, *, waiting: bool) -> None:
        """Set whether any ticket waits, so that other processes' commits matter."""


class Waiters(ABC):
    """The tickets of this process that wait for names, or those that wait for tasks."""

    def __init__(self, submit: Submit, deliver: Deliver, set_waiting: SetWaiting, timer: Timer) -> None:
        self._submit = submit
        self._deliver = deliver
        self._set_waiting = set_waiting
        self._timer = timer
        self._lock = threading.Lock()
        self._draining = False

    def handle_not_granted(self, ticket: Ticket, outcome: Outcome) -> None:
        """Handle a claim that was not granted: start waiting, keep waiting, or give up after the last try."""
        with self._lock:
            ticket.is_submitted = False
            self._clear_wakeup(ticket)
            if ticket.is_caller_gone:
                return
            gives_up = ticket.is_last_try
            if gives_up:
                tries = self._remove(ticket)
            elif ticket.is_waiting:
                tries = self._keep_waiting(ticket)
            else:
                tries = self._start_waiting(ticket)
        if gives_up:
            self._deliver([(ticket, _draining() if self._draining else outcome)])
        self._submit_all(tries)

    def handle_settled(self, ticket: Ticket, outcome: Any) -> None:
        """Handle a claim that was granted or finally refused: the ticket leaves, and others may try."""
        with self._lock:
            ticket.is_submitted = False
            tries = self._settle(ticket, outcome)
        self._submit_all(tries)

    def leave(self, ticket: Ticket) -> None:
        """Remove the ticket of a caller that disconnected, whether it waits already or not yet."""
        with self._lock:
            ticket.is_caller_gone = True
            tries = self._remove(ticket)
        self._submit_all(tries)

    def drain(self) -> None:
        """Answer every waiter with Draining; a claim that is in the engine is answered with its outcome."""
        with self._lock:
            self._draining = True
            leaving = []
            for ticket in list(self._tickets()):
                ticket.is_last_try = True
                if not ticket.is_submitted:
                    leaving.append(ticket)
            for ticket in leaving:
                self._remove(ticket)
        self._deliver([(ticket, _draining()) for ticket in leaving])

    def _start_waiting(self, ticket: Ticket) -> list[Ticket]:
        assert ticket.deadline is not None
        if self._draining:
            raise _draining()
        tries = self._enqueue(ticket)
        ticket.is_waiting = True
        ticket.command = ticket.waiting_command
        ticket.alarm = self._timer.at(ticket.deadline, partial(self._time_out, ticket))
        self._set_waiting(waiting=True)
        return tries

    def _remove(self, ticket: Ticket) -> list[Ticket]:
        if not ticket.is_waiting:
            return []
        ticket.is_waiting = False
        if ticket.alarm is not None:
            ticket.alarm.cancel()
        tries = self._dequeue(ticket)
        if not any(True for _ in self._tickets()):
            self._set_waiting(waiting=False)
        return tries

    def _time_out(self, ticket: Ticket) -> None:
        """Submit the ticket one last time, because its deadline has passed."""
        with self._lock:
            if not ticket.is_waiting or ticket.is_last_try:
                return
            ticket.is_last_try = True
            if ticket.is_submitted:
                return  # the claim in the engine is the last one
            ticket.is_submitted = True
            self._mark_last_try(ticket)
        self._submit(ticket)

    def _submit_all(self, tickets: list[Ticket]) -> None:
        for ticket in tickets:
            self._submit(ticket)

    # -- what names and tasks do differently, under the lock ------------------------------------------------------

    @abstractmethod
    def _tickets(self) -> Iterable[Ticket]:
        """Every waiting ticket."""

    @abstractmethod
    def _enqueue(self, ticket: Ticket) -> list[Ticket]:
        """Add a ticket to its queues, or raise TooManyWaiters."""

    @abstractmethod
    def _dequeue(self, ticket: Ticket) -> list[Ticket]:
        """Remove a ticket from its queues."""

    @abstractmethod
    def _keep_waiting(self, ticket: Ticket) -> list[Ticket]:
        """Let a ticket go on waiting after its claim was not granted."""

    def _settle(self, ticket: Ticket, outcome: Any) -> list[Ticket]:  # noqa: ARG002 - tasks read the outcome
        """Remove a ticket whose claim is decided."""
        return self._remove(ticket)

    @abstractmethod
    def _clear_wakeup(self, ticket: Ticket) -> None:
        """Clear the reason for which a ticket was woken, after its claim was not granted."""

    @abstractmethod
    def _mark_last_try(self, ticket: Ticket) -> None:
        """Record that the last claim of a waiting ticket is submitted."""


def _draining() -> Draining:
    return Draining("this server is shutting down")
