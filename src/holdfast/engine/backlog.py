"""The backlog: a bounded queue of tickets for the lanes. Urgent writes come first; accounts are served in rotation."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from holdfast.core.errors import Draining, Overloaded
from holdfast.engine.command import Command
from holdfast.engine.ticket import Ticket

MAX_BATCH = 256
MAX_BATCH_BYTES = 4 * 1024 * 1024
MAX_BATCH_ROWS = 2_000
MAX_QUEUED = 20_000
URGENT_SHARE = 4
"""A full backlog still accepts urgent writes, up to a quarter (1/4) more than its limit."""


class Backlog:
    """A bounded queue that hands out batches.

    Callers put tickets into an inbox that needs no lock; only the thread that takes a batch sorts them. A lock held
    while sorting cost every caller 80 µs, most of it spent on reacquiring Python's global lock.

    Whoever puts a ticket must then either call `wake`, or `take_queued` on its own thread.
    """

    def __init__(self, max_batch: int = MAX_BATCH, max_queued: int = MAX_QUEUED) -> None:
        self._max_batch = max_batch
        self._max_queued = max_queued
        self._taking = threading.Lock()
        self._inbox: deque[Ticket] = deque()
        self._sleeping = 0
        """Lanes that wait for a ticket, or are about to."""
        self._wake_up = threading.Lock()
        """Released to wake one lane, which acquires it. `SimpleQueue.get` with a timeout may block for ever instead, if
        another lane takes the item just when the time is over (CPython 3.11)."""
        self._wake_up.acquire()
        self._urgent: dict[str, deque[Ticket]] = {}
        self._new: dict[str, deque[Ticket]] = {}
        self._sorted = 0
        self._closed = False
        self._finished = False

    def put(self, ticket: Ticket) -> None:
        """Queue a ticket. One that waited for a name or a task has been admitted before, so it is never refused."""
        if self._closed:
            raise Draining("this server is shutting down")
        limit = self._max_queued + (self._max_queued // URGENT_SHARE if ticket.command.urgent else 0)
        # In this order: a ticket that a lane sorts between the two reads is then missed once, not counted twice.
        if not ticket.is_waiting and self._sorted + len(self._inbox) >= limit:
            raise Overloaded("too many requests are waiting for the store")
        self._inbox.append(ticket)
        if self._finished:  # the last lane ended between the first check and the put
            self.finish()

    def wake(self) -> None:
        """Let a lane look at the queue, if one sleeps; one that works looks by itself before it sleeps."""
        if self._sleeping and self._wake_up.locked():
            with suppress(RuntimeError):  # another thread has released it since
                self._wake_up.release()

    def take(self, seconds: float | None = None, hand_over: Callable[[], bool] = lambda: False) -> list[Ticket] | None:
        """The next batch; blocks until there is a ticket, at most for `seconds`. None once closed and empty.

        If tickets are queued already, `hand_over` is called: if it has another thread take them, this one sleeps.
        """
        self._count_sleeping(1)  # before it looks: whoever puts or leaves a ticket after that sees that it sleeps
        try:
            if self._is_quiet() or (not self._closed and hand_over()):
                self._wake_up.acquire(timeout=-1 if seconds is None else seconds)
        finally:
            self._count_sleeping(-1)
        if self._closed:
            self.wake()  # one lane after the other
        return self.take_queued() or (None if self._closed else [])

    def _count_sleeping(self, step: int) -> None:
        with self._taking:
            self._sleeping += step

    def _is_quiet(self) -> bool:
        """Whether there is nothing to do but to wait."""
        return not self.size() and not self._closed

    def take_queued(self) -> list[Ticket]:
        """The next batch of what is queued now, which may be nothing."""
        with self._taking:
            batch = self._take()
        if self._sorted:
            self.wake()  # another lane may begin with the rest
        return batch

    def _take(self) -> list[Ticket]:
        if not self._sorted and len(self._inbox) <= 1:  # a caller alone needs no turn
            return [self._inbox.popleft()] if self._inbox else []
        self._sort()
        # New work keeps a quarter of each batch, so that renewals cannot starve it.
        reserved = self._max_batch // 4 if self._new else 0
        batch = _Batch(self._max_batch - reserved)
        self._pull(self._urgent, batch)
        batch.limit = self._max_batch
        self._pull(self._new, batch)
        self._pull(self._urgent, batch)
        self._sorted -= len(batch.tickets)
        return batch.tickets

    def size(self) -> int:
        """About how many tickets are queued."""
        return len(self._inbox) + self._sorted

    def close(self) -> None:
        """Refuse new tickets; queued ones are still handed out."""
        self._closed = True
        self.wake()

    def finish(self) -> None:
        """Answer every remaining ticket with Draining; called when the last lane has ended."""
        self._finished = True
        with self._taking:
            left = [self._inbox.popleft() for _ in range(len(self._inbox))]
        for ticket in left:
            ticket.sink.deliver([(ticket, Draining("this server is shutting down"))])

    def _sort(self) -> None:
        """Move arrived tickets into the queue of their urgency and account, in order."""
        tickets = [self._inbox.popleft() for _ in range(len(self._inbox))]
        for ticket in reversed([ticket for ticket in tickets if ticket.is_waiting]):
            self._queue_of(ticket).appendleft(ticket)  # they have waited already: to the front, in this order
        for ticket in tickets:
            if not ticket.is_waiting:
                self._queue_of(ticket).append(ticket)
        self._sorted += len(tickets)

    def _queue_of(self, ticket: Ticket) -> deque[Ticket]:
        queues = self._urgent if ticket.command.urgent else self._new
        queue = queues.get(ticket.command.account)
        if queue is None:
            queue = queues[ticket.command.account] = deque()
        return queue

    def _pull(self, queues: dict[str, deque[Ticket]], batch: _Batch) -> None:
        """Move one ticket of each account in rotation, until the batch is full."""
        while queues:
            moved = False
            for account in list(queues):
                queue = queues[account]
                if not batch.accepts(queue[0].command):
                    continue
                batch.add(queue.popleft())
                moved = True
                del queues[account]
                if queue:
                    queues[account] = queue  # behind the other accounts, also in the next batch
            if not moved:
                return


class _Batch:
    """The tickets of one transaction, within its limits."""

    def __init__(self, limit: int) -> None:
        self.tickets: list[Ticket] = []
        self.limit = limit
        self._bytes = 0
        self._rows = 0
        self._once: set[tuple[str, str]] = set()

    def accepts(self, command: Command[Any]) -> bool:
        if len(self.tickets) >= self.limit:
            return False
        too_much = self._bytes + command.size() > MAX_BATCH_BYTES or self._rows + command.weight() > MAX_BATCH_ROWS
        if self.tickets and too_much:
            return False
        # The second of two requests under one Idempotency-Key must find the first one's answer in the store.
        return self._once.isdisjoint(command.once_keys())

    def add(self, ticket: Ticket) -> None:
        self.tickets.append(ticket)
        self._bytes += ticket.command.size()
        self._rows += ticket.command.weight()
        self._once.update(ticket.command.once_keys())
