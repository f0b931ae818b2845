"""Waiters for tasks: n new tasks wake the first n tickets, in order of arrival.

Unlike for names, several tickets may be served at once, and one ticket may wait for several task types. A try that
finds nothing keeps its position.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from itertools import count
from operator import itemgetter
from typing import Any

from holdfast.engine.command import Queue
from holdfast.engine.ticket import Ticket
from holdfast.engine.timer import Timer
from holdfast.engine.waiting.waiters import Deliver, SetWaiting, Submit, Waiters

MORE_PROBES = 2
"""How many tickets try next after a probe found work of another process."""


class TaskWaiters(Waiters):
    """Every caller of this process that waits for tasks."""

    def __init__(self, submit: Submit, deliver: Deliver, set_waiting: SetWaiting, timer: Timer) -> None:
        super().__init__(submit, deliver, set_waiting, timer)
        self._waiting: dict[Queue, dict[Ticket, int]] = {}
        """The tickets of each queue, with their positions."""
        self._positions: dict[Ticket, int] = {}
        self._woken_for: dict[Ticket, Queue] = {}
        """The queue whose new task a ticket was woken for."""
        self._probes: set[Ticket] = set()
        """Tickets that try because another process may have created tasks."""
        self._arrivals = count()

    def offer(self, queues: Mapping[Queue, int]) -> None:
        """Wake as many tickets as there are new tasks."""
        with self._lock:
            tries = self._wake(queues)
        self._submit_all(tries)

    def probe(self) -> None:
        """Wake one ticket of each queue: another process may have created tasks of any type."""
        with self._lock:
            tries = self._wake_probes(dict.fromkeys(self._waiting, 1))
        self._submit_all(tries)

    def _wake(self, queues: Mapping[Queue, int]) -> list[Ticket]:
        woken = []
        for queue, limit in queues.items():
            for ticket in self._first(*queue, limit):
                self._woken_for[ticket] = queue
                woken.append(ticket)
        return woken

    def _wake_probes(self, queues: Mapping[Queue, int]) -> list[Ticket]:
        woken = self._wake(queues)
        self._probes.update(woken)
        return woken

    def _first(self, account: str, task_type: str, limit: int) -> list[Ticket]:
        """The first idle tickets, in order of arrival, that wait for this type."""
        queues = [self._waiting[account, name] for name in {task_type, ""} if (account, name) in self._waiting]
        idle: list[Ticket] = []
        busy: list[Ticket] = []
        for ticket, _ in heapq.merge(*(queue.items() for queue in queues), key=itemgetter(1)):
            (busy if ticket.is_submitted else idle).append(ticket)
            if len(idle) == limit:
                break
        for ticket in idle:
            ticket.is_submitted = True
        if len(idle) < limit:  # more tasks than idle tickets: the busy tickets try once more
            for ticket in busy:
                ticket.try_again = True
        return idle

    def _tickets(self) -> Iterable[Ticket]:
        return self._positions

    def _enqueue(self, ticket: Ticket) -> list[Ticket]:
        self._positions[ticket] = position = next(self._arrivals)
        for queue in ticket.queues:
            self._waiting.setdefault(queue, {})[ticket] = position
        # A task that was offered before this ticket waited woke no ticket: try once more.
        ticket.is_submitted, ticket.try_again = True, False
        return [ticket]

    def _dequeue(self, ticket: Ticket) -> list[Ticket]:
        self._woken_for.pop(ticket, None)
        del self._positions[ticket]
        for queue in ticket.queues:
            waiting = self._waiting[queue]
            del waiting[ticket]
            if not waiting:
                del self._waiting[queue]
        return []

    def _keep_waiting(self, ticket: Ticket) -> list[Ticket]:
        ticket.is_submitted, ticket.try_again = ticket.try_again, False
        return [ticket] if ticket.is_submitted else []

    def _clear_wakeup(self, ticket: Ticket) -> None:
        self._probes.discard(ticket)
        self._woken_for.pop(ticket, None)

    def _mark_last_try(self, ticket: Ticket) -> None:
        """Do nothing: `is_submitted` of the ticket is the only record."""

    def _settle(self, ticket: Ticket, outcome: Any) -> list[Ticket]:
        """Remove the ticket; a task it was woken for and did not take is offered to the next one.

        Where a probe found work of another process there may be more.
        """
        woken_for = self._woken_for.pop(ticket, None)
        self._remove(ticket)
        if ticket in self._probes:
            self._probes.discard(ticket)
            return self._wake_probes(dict.fromkeys(ticket.queues, MORE_PROBES))
        if woken_for is not None and not _took_from(outcome, woken_for):
            return self._wake({woken_for: 1})
        return []


def _took_from(outcome: Any, queue: Queue) -> bool:
    """Whether a claim took any task of that queue."""
    taken = getattr(outcome, "taken", ())
    return any(queue[1] in {"", each.task.type} for each in taken)
