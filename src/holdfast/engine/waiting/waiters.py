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
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from holdfast.core.errors import Draining, TooManyWaiters, UnknownKey
from holdfast.core.principal import Principal
from holdfast.core.row import Instant
from holdfast.engine.command import Outcome
from holdfast.engine.ticket import Ticket
from holdfast.engine.timer import Timer

Submit = Callable[[Ticket], None]
Deliver = Callable[[list[tuple[Ticket, Any]]], None]


MAX_WAITERS = 10_000
"""Callers of this process that wait for names, and as many that wait for tasks: each is an open connection."""
MAX_OF_ACCOUNT = MAX_WAITERS // 2
"""One account leaves the other half to others."""


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
        self._by_account: Counter[str] = Counter()
        """How many wait, by account; only accounts with waiters have an entry."""
        self._repeated: dict[tuple[str, str], list[Ticket]] = {}
        """Those with an Idempotency-Key, by account and key."""

    def handle_not_granted(self, ticket: Ticket, outcome: Outcome) -> None:
        """Handle a claim that was not granted: start waiting, keep waiting, or give up after the last try."""
        with self._lock:
            ticket.is_submitted, ticket.locked_until = False, None
            self._clear_wakeup(ticket)
            if ticket.is_caller_gone:
                return
            gives_up = ticket.is_last_try
            if gives_up:
                tries = self._remove(ticket)
                outcome = self._last_answer(ticket, outcome)
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
            if not isinstance(outcome, BaseException):
                tries += self._wake_repeated(ticket)
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

    def end_waits(self, principal: Principal, now: Instant) -> None:
        """Answer the waiters of a principal whose key no longer works; a claim in the engine finds that out there."""
        refused: list[tuple[Ticket, Any]] = []
        tries: list[Ticket] = []
        with self._lock:
            for ticket in list(self._tickets()):
                refusal = _refusal(ticket, principal, now)
                if refusal is not None and not ticket.is_submitted:
                    refused.append((ticket, refusal))
                    tries += self._remove(ticket)
        self._deliver(refused)
        self._submit_all(tries)

    def size(self, account: str = "") -> int:
        """How many wait, of one account or of all."""
        with self._lock:
            return self._by_account[account] if account else self._by_account.total()

    def _start_waiting(self, ticket: Ticket) -> list[Ticket]:
        assert ticket.deadline is not None
        if self._draining:
            raise _draining()
        account = ticket.command.account
        if self._by_account[account] >= MAX_OF_ACCOUNT:
            raise TooManyWaiters(f"{MAX_OF_ACCOUNT} callers of your account wait on this server", retry_after=5)
        if self._by_account.total() >= MAX_WAITERS:
            raise TooManyWaiters(f"{MAX_WAITERS} callers already wait on this server", retry_after=5)
        tries = self._enqueue(ticket)
        self._by_account[account] += 1
        for key in ticket.command.once_keys():
            self._repeated.setdefault(key, []).append(ticket)
        ticket.is_waiting = True
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
        for key in ticket.command.once_keys():
            self._repeated[key].remove(ticket)
            if not self._repeated[key]:
                del self._repeated[key]
        self._by_account[ticket.command.account] -= 1
        if not self._by_account[ticket.command.account]:
            del self._by_account[ticket.command.account]
        if not self._by_account:
            self._set_waiting(waiting=False)
        return tries

    def _wake_repeated(self, answered: Ticket) -> list[Ticket]:
        """Let those try that wait under the key of an answered claim: each finds its stored answer, out of turn."""
        tries = []
        for ticket in [ticket for key in answered.command.once_keys() for ticket in self._repeated.get(key, ())]:
            if ticket.is_submitted:
                ticket.try_again = True
            else:
                ticket.is_submitted = True
                self._mark_out_of_turn(ticket)
                tries.append(ticket)
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
            self._mark_out_of_turn(ticket)
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

    def _last_answer(self, ticket: Ticket, outcome: Outcome) -> Outcome:  # noqa: ARG002 - names read the ticket
        """The answer to a caller that waited for as long as it wanted to."""
        return outcome

    def _settle(self, ticket: Ticket, outcome: Any) -> list[Ticket]:  # noqa: ARG002 - tasks read the outcome
        """Remove a ticket whose claim is decided."""
        return self._remove(ticket)

    @abstractmethod
    def _clear_wakeup(self, ticket: Ticket) -> None:
        """Clear the reason for which a ticket was woken, after its claim was not granted."""

    @abstractmethod
    def _mark_out_of_turn(self, ticket: Ticket) -> None:
        """Record that a claim of a waiting ticket is submitted although it may not be its turn."""


def _refusal(ticket: Ticket, principal: Principal, now: Instant) -> UnknownKey | None:
    """Why a ticket of this principal must end, or None."""
    if ticket.key is None or ticket.key[:2] != (principal.account, principal.id):
        return None
    try:
        ticket.key.check(principal, now)
    except UnknownKey as refusal:
        return refusal
    return None


def _draining() -> Draining:
    return Draining("this server is shutting down")
