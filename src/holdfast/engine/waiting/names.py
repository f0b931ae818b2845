"""Waiters for names: each name has a queue, served in order of arrival. A claim of several names is in each queue.

Only the head of a queue tries again: when a commit of this process freed the name, when another process may have freed
it, and when the holder's lease expires (the sweep frees the name then).
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from holdfast.core.errors import TooManyWaiters
from holdfast.core.row import Key
from holdfast.engine.command import Command, Held, Outcome
from holdfast.engine.ticket import Ticket
from holdfast.engine.timer import Timer
from holdfast.engine.waiting.kept_places import KeptPlaces
from holdfast.engine.waiting.waiters import Deliver, SetWaiting, Submit, Waiters

MAX_OF_NAME = 1_000
CLOCK_MARGIN = 0.002
"""Seconds added to a wait, so that the moment has certainly passed by the store's clock."""
ALARM_MARGIN = 0.01
"""An alarm that is at most so many seconds later serves as well."""
FAR_SECONDS = 120.0
"""A later moment wakes nobody: a caller waits for a minute at most, and when it leaves the next one tries."""


class NameQueue:
    """The waiters for one name."""

    __slots__ = ("is_trying", "tickets", "try_again", "wakes_at")

    def __init__(self) -> None:
        self.tickets: deque[Ticket] = deque()
        self.wakes_at = 0.0
        """The moment of the last alarm that lets the head try."""
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
        self._kept_places = KeptPlaces()
        self._arrivals = itertools.count(1)

    def length(self, key: Key) -> int:
        """How many wait for a name in this process."""
        with self._lock:
            queue = self._queues.get(key)
            return len(queue.tickets) if queue else 0

    def waited_for(self, command: Command[Any]) -> frozenset[Key]:
        """The names of a claim that others wait for here; read without the lock, because every claim calls this."""
        queues = self._queues
        return frozenset(key for key in command.wait_keys() if key in queues) if queues else frozenset()

    def join_queue(self, ticket: Ticket) -> bool:
        """Join the queues if every name has one, so that no waiter is overtaken; returns whether it joined.

        If some have none, the claim runs first, for those only.
        """
        with self._lock:
            waited = self.waited_for(ticket.command)
            if len(waited) == len(ticket.wait_keys):
                self._start_waiting(ticket)
                return True
        if waited:
            ticket.command = ticket.command.yield_to_waiters(waited)
        return False

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
        """Let the head of a queue try when the name's delay is over, or its time as a done job."""
        now = time.monotonic()
        moment = now + seconds + CLOCK_MARGIN
        with self._lock:
            queue = self._queues.get(key)
            if queue is None or seconds > FAR_SECONDS or now < queue.wakes_at <= moment + ALARM_MARGIN:
                return  # each try would set one more alarm
            queue.wakes_at = moment
        self._timer.at(moment, partial(self.wake, [key]))

    def _wake_head(self, key: Key) -> list[Ticket]:
        queue = self._queues.get(key)
        if queue is None:
            return []
        if queue.is_trying:
            queue.try_again = True
            return []
        head, queue.is_trying = queue.tickets[0], True
        if head.is_submitted:  # it was submitted for another name, or for the last time while it was not the head
            queue.try_again = True
            return []
        head.is_submitted = True
        self._restrict(head)
        return [head]

    def _restrict(self, ticket: Ticket) -> None:
        """Let a claim take only names whose queue it heads: it must overtake nobody."""
        behind = set()
        for key in ticket.wait_keys:
            queue = self._queues[key]
            if queue.tickets[0] is ticket:
                queue.is_trying = True
            else:
                behind.add(key)
        command = ticket.waiting_command
        ticket.command = command.yield_to_waiters(frozenset(behind)) if behind else command

    def _tickets(self) -> Iterator[Ticket]:
        return iter({id(ticket): ticket for queue in self._queues.values() for ticket in queue.tickets}.values())

    def _enqueue(self, ticket: Ticket) -> list[Ticket]:
        keys = ticket.wait_keys
        if any(key in self._queues and len(self._queues[key].tickets) >= MAX_OF_NAME for key in keys):
            raise TooManyWaiters(f"{MAX_OF_NAME} callers already wait for this name", retry_after=5)
        kept = self._kept_places.take(ticket.command.waiting_place(), keys)
        ticket.arrival = next(self._arrivals) if kept is None else kept
        for key in keys:
            self._queues.setdefault(key, NameQueue()).insert(ticket)
        return []

    def _last_answer(self, ticket: Ticket, outcome: Outcome) -> Outcome:
        """The answer, with an id that keeps the caller's place."""
        if not isinstance(outcome, Held):
            return outcome
        return self.with_length(replace(outcome, waiting_id=self._kept_places.keep(ticket.wait_keys, ticket.arrival)))

    def with_length(self, outcome: Held) -> Held:
        """The outcome with the number of callers that wait for the name."""
        queue = self._queues.get(outcome.lease.key)
        return outcome if queue is None else replace(outcome, waiting=len(queue.tickets))

    def _dequeue(self, ticket: Ticket) -> list[Ticket]:
        return [head for key in ticket.wait_keys for head in self._leave_queue(key, ticket)]

    def _leave_queue(self, key: Key, ticket: Ticket) -> list[Ticket]:
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
        freed = []
        for key in ticket.wait_keys:
            queue = self._queues[key]
            if queue.tickets[0] is not ticket:
                continue
            queue.is_trying = False
            queue.insert(queue.tickets.popleft())  # a caller that asked again may have come before it meanwhile
            if queue.try_again:
                freed.append(key)
            queue.try_again = False
        return [head for key in freed for head in self._wake_head(key)]

    def _clear_wakeup(self, ticket: Ticket) -> None:
        """Do nothing: the queue's state changes when the ticket keeps waiting or leaves."""

    def _mark_out_of_turn(self, ticket: Ticket) -> None:
        self._restrict(ticket)
