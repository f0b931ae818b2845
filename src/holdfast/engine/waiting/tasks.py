"""The crowd: whoever waits for work of some types. n new tasks let the n who came first try.

Waiting happens outside the batch, as in a line; but here several may be served at once, and one may wait for
several types. A try that finds nothing keeps its place.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from operator import itemgetter
from typing import Any

from holdfast.core.errors import Draining, TooManyWaiters
from holdfast.engine.backlog import Ticket
from holdfast.engine.command import Outcome, Queue
from holdfast.engine.timer import Timer

MAX_WAITERS = 10_000
"""In one process: each is a connection held open."""
MORE = 2
"""Whoever finds work that another process left lets so many others look."""


class Crowd:
    """Everybody in this process who waits for tasks."""

    def __init__(
        self,
        submit: Callable[[Ticket], None],
        deliver: Callable[[list[tuple[Ticket, Any]]], None],
        attend: Callable[[bool], None],
        timer: Timer,
    ) -> None:
        self._submit = submit
        self._deliver = deliver
        self._attend = attend
        self._timer = timer
        self._lock = threading.Lock()
        self._waiting: dict[Queue, dict[Ticket, int]] = {}
        """Who waits for a queue, and in which place they came."""
        self._places: dict[Ticket, int] = {}
        self._woken_for: dict[Ticket, Queue] = {}
        """Whose work they were told of."""
        self._scouts: set[Ticket] = set()
        """Who tries because another process may have left work."""
        self._arrivals = count()
        self._draining = False

    def found_nothing(self, ticket: Ticket, outcome: Outcome) -> None:
        """A claim with patience came up empty: wait, or keep waiting, or give up."""
        with self._lock:
            ticket.under_way = False
            self._scouts.discard(ticket)
            self._woken_for.pop(ticket, None)
            if ticket.gone:
                return
            looks_again, gives_up = False, ticket.last_try
            if gives_up:
                self._remove(ticket)
            else:
                # What was offered before it stood here, or while its try was under way, was told to nobody.
                looks_again = ticket.again or not ticket.in_line
                if not ticket.in_line:
                    self._stand(ticket)
                ticket.under_way, ticket.again = looks_again, False
        if looks_again:
            self._submit(ticket)
        if gives_up:
            draining = Draining("this server is shutting down") if self._draining else None
            self._deliver([(ticket, draining or outcome)])

    def settled(self, ticket: Ticket, outcome: Any) -> None:
        """Its claim found work, or was refused: it leaves.

        What it was woken for and did not take is offered to the next one. Where another process left work there may
        be more.
        """
        with self._lock:
            ticket.under_way = False
            woken_for = self._woken_for.get(ticket)
            self._remove(ticket)
            scout = ticket in self._scouts
            self._scouts.discard(ticket)
        if scout:
            self._look(dict.fromkeys(ticket.queues, MORE))
        elif woken_for is not None and not _took_from(outcome, woken_for):
            self.offer({woken_for: 1})

    def offer(self, queues: Mapping[Queue, int]) -> None:
        """There is that much work: let as many try."""
        with self._lock:
            chosen = self._chosen(queues)
        for ticket in chosen:
            self._submit(ticket)

    def look(self) -> None:
        """Another process may have made work of any type: one of each queue looks."""
        with self._lock:
            queues = list(self._waiting)
        self._look(dict.fromkeys(queues, 1))

    def size(self, account: str = "") -> int:
        """How many wait, of one account or of all."""
        if not account:
            return len(self._places)
        with self._lock:
            return sum(ticket.command.account == account for ticket in self._places)

    def _look(self, queues: Mapping[Queue, int]) -> None:
        with self._lock:
            chosen = self._chosen(queues)
            self._scouts.update(chosen)
        for ticket in chosen:
            self._submit(ticket)

    def _chosen(self, queues: Mapping[Queue, int]) -> list[Ticket]:
        chosen = []
        for queue, many in queues.items():
            for ticket in self._first(*queue, many):
                self._woken_for[ticket] = queue
                chosen.append(ticket)
        return chosen

    def leave(self, ticket: Ticket) -> None:
        """Its caller went away."""
        with self._lock:
            ticket.gone = True
            self._remove(ticket)

    def drain(self) -> None:
        """Send everybody away with a hint to come back; whose claim is on its way is answered by that."""
        with self._lock:
            self._draining = True
            leaving = [ticket for ticket in self._places if not ticket.under_way]
            for ticket in self._places:
                ticket.last_try = True
            for ticket in leaving:
                self._remove(ticket)
        self._deliver([(ticket, Draining("this server is shutting down")) for ticket in leaving])

    def _first(self, account: str, task_type: str, many: int) -> list[Ticket]:
        """Those who came first among the idle ones that would take it."""
        queues = [self._waiting[account, name] for name in {task_type, ""} if (account, name) in self._waiting]
        idle: list[Ticket] = []
        busy: list[Ticket] = []
        for ticket, _ in heapq.merge(*(queue.items() for queue in queues), key=itemgetter(1)):
            (busy if ticket.under_way else idle).append(ticket)
            if len(idle) == many:
                break
        for ticket in idle:
            ticket.under_way = True
        if len(idle) < many:  # there is more than the idle can take: whose try is under way looks once more
            for ticket in busy:
                ticket.again = True
        return idle

    def _stand(self, ticket: Ticket) -> None:
        assert ticket.deadline is not None
        if self._draining:
            raise Draining("this server is shutting down")
        if len(self._places) >= MAX_WAITERS:
            raise TooManyWaiters(f"{MAX_WAITERS} callers already wait for work", retry_after=5)
        ticket.in_line = True
        self._places[ticket] = place = next(self._arrivals)
        for queue in ticket.queues:
            self._waiting.setdefault(queue, {})[ticket] = place
        ticket.alarm = self._timer.at(ticket.deadline, partial(self._run_out, ticket))
        self._attend(True)  # noqa: FBT003 - see the store's contract

    def _remove(self, ticket: Ticket) -> None:
        self._woken_for.pop(ticket, None)
        if self._places.pop(ticket, None) is None:
            return
        ticket.in_line = False
        if ticket.alarm is not None:
            ticket.alarm.cancel()
        for queue in ticket.queues:
            waiting = self._waiting[queue]
            del waiting[ticket]
            if not waiting:
                del self._waiting[queue]
        if not self._places:
            self._attend(False)  # noqa: FBT003 - see the store's contract

    def _run_out(self, ticket: Ticket) -> None:
        """Its patience ends: it tries one last time, so that the answer is fresh."""
        with self._lock:
            if not ticket.in_line or ticket.last_try:
                return
            ticket.last_try = True
            if ticket.under_way:
                return  # the try under way is the last one
            ticket.under_way = True
        self._submit(ticket)


def _took_from(outcome: Any, queue: Queue) -> bool:
    """Whether a claim took any task of that queue."""
    taken = getattr(outcome, "taken", ())
    return any(queue[1] in {"", each.task.type} for each in taken)
