"""Waiters for names: each name has a queue, served in order of arrival.

Only the head of a queue tries again: when a commit of this process freed the name, when another process may have freed
it, and when the holder's lease expires (the sweep frees the name then).
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from holdfast.core.errors import TooManyWaiters
from holdfast.core.row import Key
from holdfast.engine.command import Held, Outcome
from holdfast.engine.ticket import Ticket
from holdfast.engine.timer import Timer
from holdfast.engine.waiting.places import Places
from holdfast.engine.waiting.waiters import Deliver, SetWaiting, Submit, Waiters

MAX_OF_NAME = 1_000
CLOCK_MARGIN = 0.002
"""Seconds added to a wait, so that the moment has certainly passed by the store's clock."""


class NameQueue:
    """The waiters for one name."""

    __slots__ = ("is_trying", "tickets", "try_again")

    def __init__(self) -> None:
        self.tickets: deque[Ticket] = deque()
        self.is_trying = False
        """Whether the head's claim is in the engine."""
        self.try_again = False
        """Whether the name was freed while the head's claim was in the engine."""

    def insert(self, ticket: Ticket) -> None:
        """Insert a ticket by its arrival; a head whose claim is in the engine stays the head until it is decided."""
        place, first = len(self.tickets), 1 if self.is_trying else 0
        while place > first and self.tickets[place - 1].arrival > ticket.arrival:
            place -= 1
        self.tickets.insert(place, ticket)


class NameWaiters(Waiters):
    """Every caller of this process that waits for a name."""

    def __init__(self, submit: Submit, deliver: Deliver, set_waiting: SetWaiting, timer: Timer) -> None:
        super().__init__(submit, deliver, set_waiting, timer)
        self._queues: dict[Key, NameQueue] = {}
        self._places = Places()
        self._arrivals = itertools.count(1)

    def length(self, key: Key) -> int:
        """How many wait for a name in this process."""
        with self._lock:
            queue = self._queues.get(key)
            return len(queue.tickets) if queue else 0

    def has_waiters(self, key: Key | None) -> bool:
        """Whether any ticket waits for that name here; read without the lock, because every claim calls this."""
        return key in self._queues

    def join_queue(self, ticket: Ticket) -> bool:
        """Join the queue of the name, if there is one, so that no waiter is overtaken; returns whether it joined."""
        with self._lock:
            if ticket.wait_key not in self._queues:
                return False
            self._start_waiting(ticket)
        return True

    def wake(self, keys: Iterable[Key]) -> None:
        """Let the heads of these queues try again."""
        with self._lock:
            heads = [head for key in keys for head in self._wake_head(key)]
        self._submit_all(heads)

    def wake_all(self) -> None:
        """Let every head try: another process may have freed any name."""
        with self._lock:
            heads = [head for key in self._queues for head in self._wake_head(key)]
        self._submit_all(heads)

    def wake_later(self, key: Key, seconds: float) -> None:
        """Let the head of a queue try when the name's delay is over."""
        self._timer.at(time.monotonic() + seconds + CLOCK_MARGIN, partial(self.wake, [key]))

    def _wake_head(self, key: Key) -> list[Ticket]:
        queue = self._queues.get(key)
        if queue is None:
            return []
        if queue.is_trying:
            queue.try_again = True
            return []
        head, queue.is_trying = queue.tickets[0], True
        if head.is_submitted:  # its last try, submitted while it was not the head
            queue.try_again = True
            return []
        head.is_submitted = True
        return [head]

    def _tickets(self) -> Iterator[Ticket]:
        return (ticket for queue in self._queues.values() for ticket in queue.tickets)

    def _enqueue(self, ticket: Ticket) -> list[Ticket]:
        key = _key(ticket)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = NameQueue()
        if len(queue.tickets) >= MAX_OF_NAME:
            raise TooManyWaiters(f"{MAX_OF_NAME} callers already wait for this name", retry_after=5)
        kept = self._places.take(ticket.command.waiting_place(), key)
        ticket.arrival = next(self._arrivals) if kept is None else kept
        queue.insert(ticket)
        return []

    def _last_answer(self, ticket: Ticket, outcome: Outcome) -> Outcome:
        """The answer, with an id that keeps the caller's place."""
        if not isinstance(outcome, Held):
            return outcome
        return self.with_length(replace(outcome, waiting_id=self._places.keep(_key(ticket), ticket.arrival)))

    def with_length(self, outcome: Held) -> Held:
        """The outcome with the number of callers that wait for the name."""
        queue = self._queues.get(outcome.lease.key)
        return outcome if queue is None else replace(outcome, waiting=len(queue.tickets))

    def _dequeue(self, ticket: Ticket) -> list[Ticket]:
        key = _key(ticket)
        queue = self._queues[key]
        was_head = queue.tickets[0] is ticket
        queue.tickets.remove(ticket)
        if not queue.tickets:
            del self._queues[key]
            return []
        if not was_head:
            return []
        # The head left with its claim decided, or disconnected: the next head tries if the name may be free.
        may_be_free, queue.is_trying, queue.try_again = queue.is_trying or queue.try_again, False, False
        return self._wake_head(key) if may_be_free else []

    def _keep_waiting(self, ticket: Ticket) -> list[Ticket]:
        key = _key(ticket)
        queue = self._queues[key]
        queue.is_trying = False
        if queue.tickets[0] is ticket:  # a caller that asked again may have come before it meanwhile
            queue.insert(queue.tickets.popleft())
        was_freed, queue.try_again = queue.try_again, False
        return self._wake_head(key) if was_freed else []

    def _clear_wakeup(self, ticket: Ticket) -> None:
        """Do nothing: the queue's state changes when the ticket keeps waiting or leaves."""

    def _mark_last_try(self, ticket: Ticket) -> None:
        queue = self._queues[_key(ticket)]
        queue.is_trying = queue.is_trying or queue.tickets[0] is ticket


def _key(ticket: Ticket) -> Key:
    assert ticket.wait_key is not None
    return ticket.wait_key
