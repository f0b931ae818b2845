"""Waiters: tickets whose claim was not granted and whose callers are willing to wait.

Waiting happens outside the batch and holds no row. A waiting ticket leaves when its claim is granted or refused for
good, when its deadline has passed and one last try brought nothing, when its caller disconnects, or when the server
drains. A wake-up carries no data: the woken claim runs again, and the store decides.

This class is the part that names and tasks share. Its subclasses keep the queues and choose who tries next: their
methods run under the lock and return the tickets to submit, which happens after the lock is released.
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


class Attend(Protocol):
    """Called when the first ticket starts to wait and when the last one has left."""

    def __call__(self, *, waiting: bool) -> None:
        """Whether other processes' commits matter now."""


class Waiters(ABC):
    """The tickets of this process that wait for one kind of thing."""

    def __init__(self, submit: Submit, deliver: Deliver, attend: Attend, timer: Timer) -> None:
        self._submit = submit
        self._deliver = deliver
        self._attend = attend
        self._timer = timer
        self._lock = threading.Lock()
        self._draining = False

    def not_granted(self, ticket: Ticket, outcome: Outcome) -> None:
        """A claim found nothing to take: start waiting, keep waiting, or give up after the last try."""
        with self._lock:
            ticket.is_submitted = False
            self._returned(ticket)
            if ticket.is_caller_gone:
                return
            gives_up = ticket.is_last_try
            if gives_up:
                tries = self._remove(ticket)
            elif ticket.is_waiting:
                tries = self._keep(ticket)
            else:
                tries = self._start_waiting(ticket)
        if gives_up:
            self._deliver([(ticket, _draining() if self._draining else outcome)])
        self._submit_all(tries)

    def settled(self, ticket: Ticket, outcome: Any) -> None:
        """A claim was granted or refused for good: the ticket leaves, and others try if there is reason to."""
        with self._lock:
            ticket.is_submitted = False
            tries = self._settle(ticket, outcome)
        self._submit_all(tries)

    def leave(self, ticket: Ticket) -> None:
        """The caller disconnected, whether its ticket waits already or not yet."""
        with self._lock:
            ticket.is_caller_gone = True
            tries = self._remove(ticket)
        self._submit_all(tries)

    def drain(self) -> None:
        """Answer every waiter that the server is shutting down; a claim in the engine is answered by its outcome."""
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
        tries = self._join(ticket)
        ticket.is_waiting = True
        ticket.command = ticket.waiting_command
        ticket.alarm = self._timer.at(ticket.deadline, partial(self._time_out, ticket))
        self._attend(waiting=True)
        return tries

    def _remove(self, ticket: Ticket) -> list[Ticket]:
        if not ticket.is_waiting:
            return []
        ticket.is_waiting = False
        if ticket.alarm is not None:
            ticket.alarm.cancel()
        tries = self._unjoin(ticket)
        if not any(True for _ in self._tickets()):
            self._attend(waiting=False)
        return tries

    def _time_out(self, ticket: Ticket) -> None:
        """The deadline has passed: try one last time, so that the answer is fresh."""
        with self._lock:
            if not ticket.is_waiting or ticket.is_last_try:
                return
            ticket.is_last_try = True
            if ticket.is_submitted:
                return  # the claim in the engine is the last one
            ticket.is_submitted = True
            self._timed_out(ticket)
        self._submit(ticket)

    def _submit_all(self, tickets: list[Ticket]) -> None:
        for ticket in tickets:
            self._submit(ticket)

    # -- what names and tasks do differently, under the lock ------------------------------------------------------

    @abstractmethod
    def _tickets(self) -> Iterable[Ticket]:
        """Every waiting ticket."""

    @abstractmethod
    def _join(self, ticket: Ticket) -> list[Ticket]:
        """Add a ticket to its queues, or raise TooManyWaiters."""

    @abstractmethod
    def _unjoin(self, ticket: Ticket) -> list[Ticket]:
        """Take a ticket out of its queues."""

    @abstractmethod
    def _keep(self, ticket: Ticket) -> list[Ticket]:
        """The claim of a waiting ticket came back without result."""

    def _settle(self, ticket: Ticket, outcome: Any) -> list[Ticket]:  # noqa: ARG002 - tasks read the outcome
        """The claim of a ticket is decided."""
        return self._remove(ticket)

    @abstractmethod
    def _returned(self, ticket: Ticket) -> None:
        """The claim of a ticket came back without result, whether the ticket waits or not."""

    @abstractmethod
    def _timed_out(self, ticket: Ticket) -> None:
        """The last claim of a waiting ticket is about to be submitted."""


def _draining() -> Draining:
    return Draining("this server is shutting down")
