"""Waiters for tasks: n new tasks wake the first n tickets, in order of arrival.

Unlike for names, several tickets may be served at once, and one ticket may wait for several task types. A try that
finds nothing keeps its position.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice
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
        self._owed: dict[Ticket, Queue] = {}
        """The queue whose new task belongs to a ticket that was trying already, for another reason."""
        self._owed_probes: set[Ticket] = set()
        """Tickets that were trying when another process may have created tasks."""
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
            owed = self._owe(queue, limit)
            woken += self._first(queue, limit - owed)
        return woken

    def _wake_probes(self, queues: Mapping[Queue, int]) -> list[Ticket]:
        """Let the first tickets of each queue try, or try once more: later ones must not overtake them."""
        woken = []
        for queue, limit in queues.items():
            for ticket in islice(self._in_order(queue), limit):
                if ticket.is_submitted:
                    ticket.try_again = True
                    self._owed_probes.add(ticket)
                else:
                    ticket.is_submitted = True
                    self._probes.add(ticket)
                    woken.append(ticket)
        return woken

    def _probed_by(self, ticket: Ticket) -> Iterable[Queue]:
        """The queues that a ticket looked into: one that waits for any type stood for those of every type."""
        account = ticket.command.account
        if (account, "") not in ticket.queues:
            return ticket.queues
        return [queue for queue in self._waiting if queue[0] == account]

    def _owe(self, queue: Queue, limit: int) -> int:
        """Let the first tickets try once more that try already and were woken for no task; returns how many.

        Otherwise a task that arrives during a probe would go to a ticket that arrived later.
        """
        owed = 0
        for ticket in self._in_order(queue):
            if owed == limit or not ticket.is_submitted:
                break
            if not (ticket in self._woken_for or ticket in self._owed or ticket.is_last_try):
                self._owed[ticket] = queue
                ticket.try_again = True
                owed += 1
        return owed

    def _first(self, queue: Queue, limit: int) -> list[Ticket]:
        """Take the first idle tickets, in order of arrival, that wait for this type."""
        idle: list[Ticket] = []
        busy: list[Ticket] = []
        for ticket in self._in_order(queue):
            if len(idle) == limit:
                break
            (busy if ticket.is_submitted else idle).append(ticket)
        for ticket in idle:
            ticket.is_submitted = True
            self._woken_for[ticket] = queue
        if len(idle) < limit:  # more tasks than idle tickets: the busy tickets try once more
            for ticket in busy:
                ticket.try_again = True
        return idle

    def _in_order(self, queue: Queue) -> Iterator[Ticket]:
        """The tickets that wait for this type or for any, in order of arrival."""
        account, task_type = queue
        queues = [self._waiting[account, name] for name in {task_type, ""} if (account, name) in self._waiting]
        return map(itemgetter(0), heapq.merge(*(queue.items() for queue in queues), key=itemgetter(1)))

    def _tickets(self) -> Iterable[Ticket]:
        return self._positions

    def _enqueue(self, ticket: Ticket) -> list[Ticket]:
        has_idle = all(any(not each.is_submitted for each in self._in_order(queue)) for queue in ticket.queues)
        self._positions[ticket] = position = next(self._arrivals)
        for queue in ticket.queues:
            self._waiting.setdefault(queue, {})[ticket] = position
        if has_idle:
            return []  # a task that was offered before this ticket waited woke an earlier one
        # A task that was offered before this ticket waited woke no ticket: try once more.
        ticket.is_submitted, ticket.try_again = True, False
        return [ticket]

    def _dequeue(self, ticket: Ticket) -> list[Ticket]:
        self._woken_for.pop(ticket, None)
        owed = self._owed.pop(ticket, None)
        del self._positions[ticket]
        for queue in ticket.queues:
            waiting = self._waiting[queue]
            del waiting[ticket]
            if not waiting:
                del self._waiting[queue]
        # Its try may have been too early for that task, or have found another one.
        tries = [] if owed is None else self._wake({owed: 1})
        if ticket in self._owed_probes:
            self._owed_probes.discard(ticket)
            tries += self._wake_probes(dict.fromkeys(self._probed_by(ticket), 1))
        return tries

    def _keep_waiting(self, ticket: Ticket) -> list[Ticket]:
        if ticket in self._owed:
            self._woken_for[ticket] = self._owed.pop(ticket)
        if ticket in self._owed_probes:
            self._owed_probes.discard(ticket)
            self._probes.add(ticket)
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
        tries = self._remove(ticket)
        if ticket in self._probes:
            self._probes.discard(ticket)
            tries += self._wake_probes(dict.fromkeys(self._probed_by(ticket), MORE_PROBES))
        if woken_for is not None and not _took_from(outcome, woken_for):
            tries += self._wake({woken_for: 1})
        return tries


def _took_from(outcome: Any, queue: Queue) -> bool:
    """Whether a claim took any task of that queue."""
    taken = getattr(outcome, "taken", ())
    return any(queue[1] in {"", each.task.type} for each in taken)
