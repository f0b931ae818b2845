"""What waits in front of the lanes: holders' writes first, accounts in turn, never more than fits."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from holdfast.core.errors import Draining, Overloaded
from holdfast.core.row import Key
from holdfast.engine.command import Command, Queue
from holdfast.engine.timer import Alarm

MAX_BATCH = 256
MAX_BATCH_BYTES = 4 * 1024 * 1024
MAX_BATCH_ROWS = 2_000
MAX_QUEUED = 20_000
RESERVE = 4
"""A queue full of new work still has a quarter more room for holders' writes."""


class Sink(Protocol):
    """Where replies go. A whole batch is delivered in one call."""

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        """Hand each outcome, or the exception that stands for it, to whoever waits for it."""


class Ticket:
    """A command on its way, and where its reply goes."""

    __slots__ = (
        "again",
        "alarm",
        "command",
        "deadline",
        "gone",
        "in_line",
        "last_try",
        "line",
        "queues",
        "sink",
        "slot",
        "under_way",
        "while_waiting",
    )

    def __init__(self, command: Command[Any], sink: Sink, slot: Any = None, deadline: float | None = None) -> None:
        self.command = command
        self.while_waiting = command
        """What it asks for once it stands in line, where nobody is passed any more."""
        self.sink = sink
        self.slot = slot
        self.deadline = deadline
        """Until when, by the monotonic clock, its caller will wait in line; None for no patience."""
        self.line: Key | None = None if deadline is None else command.line()
        self.queues: tuple[Queue, ...] = () if deadline is None else command.queues()
        self.in_line = False
        self.alarm: Alarm | None = None
        """What ends its patience."""
        self.last_try = False
        self.under_way = False
        """Its claim is on its way through the engine: it must not be sent a second time."""
        self.again = False
        """There was something new while it was."""
        self.gone = False
        """Its caller went away: it must not stand in line any more."""


class Backlog:
    """A bounded queue that hands out batches.

    Callers put tickets into an inbox that needs no lock of ours; only a lane that takes a batch sorts them. A lock
    held while sorting cost every caller 80 µs, most of it spent on getting Python's lock back.
    """

    def __init__(self, max_batch: int = MAX_BATCH, max_queued: int = MAX_QUEUED) -> None:
        self._max_batch = max_batch
        self._max_queued = max_queued
        self._taking = threading.Lock()
        self._inbox: SimpleQueue[Ticket | None] = SimpleQueue()
        self._urgent: dict[str, deque[Ticket]] = {}
        self._new: dict[str, deque[Ticket]] = {}
        self._sorted = 0
        self._closed = False
        self._finished = False

    def put(self, ticket: Ticket) -> None:
        """Queue a ticket. One that has stood in line was admitted long ago, however full it is now."""
        if self._closed:
            raise Draining("this server is shutting down")
        room = self._max_queued + (self._max_queued // RESERVE if ticket.command.urgent else 0)
        # In this order: what a lane sorts between the two looks is then missed for once, not counted twice.
        if not ticket.in_line and self._sorted + self._inbox.qsize() >= room:
            raise Overloaded("too many requests are waiting for the store")
        self._inbox.put(ticket)
        if self._finished:  # it was closed between the first line and the last
            self.finish()

    def take(self) -> list[Ticket] | None:
        """Whatever is queued, up to a batch; waits for the first. None once closed and empty. Lanes take in turn."""
        with self._taking:
            return self._take()

    def _take(self) -> list[Ticket] | None:
        self._sort(wait=not self._sorted and not self._closed)
        if not self._sorted:
            return None
        # New work keeps a quarter of each batch, so that renewals cannot starve it.
        reserved = self._max_batch // 4 if self._new else 0
        taken = _Batch(self._max_batch - reserved)
        self._pull(self._urgent, taken)
        taken.limit = self._max_batch
        self._pull(self._new, taken)
        self._pull(self._urgent, taken)
        self._sorted -= len(taken.tickets)
        return taken.tickets

    def size(self) -> int:
        """How many wait, about."""
        return self._inbox.qsize() + self._sorted

    def close(self) -> None:
        """Take nothing more; what is queued is still handed out."""
        self._closed = True
        self._inbox.put(None)

    def finish(self) -> None:
        """Nobody takes any more: whatever still came is told so, by whoever finds it."""
        self._finished = True
        while True:
            try:
                ticket = self._inbox.get_nowait()
            except Empty:
                return
            if ticket is not None:
                ticket.sink.deliver([(ticket, Draining("this server is shutting down"))])

    def _sort(self, *, wait: bool) -> None:
        """Move what has arrived to where it belongs: by urgency, by account, in order."""
        arrived: list[Ticket | None] = [self._inbox.get()] if wait else []
        with suppress(Empty):
            while len(arrived) < self._max_queued:
                arrived.append(self._inbox.get_nowait())
        tickets = [ticket for ticket in arrived if ticket is not None]
        for ticket in reversed([ticket for ticket in tickets if ticket.in_line]):
            self._line_of(ticket).appendleft(ticket)  # they have waited long enough, in this order
        for ticket in tickets:
            if not ticket.in_line:
                self._line_of(ticket).append(ticket)
        self._sorted += len(tickets)

    def _line_of(self, ticket: Ticket) -> deque[Ticket]:
        queue = self._urgent if ticket.command.urgent else self._new
        line = queue.get(ticket.command.account)
        if line is None:
            line = queue[ticket.command.account] = deque()
        return line

    def _pull(self, queue: dict[str, deque[Ticket]], taken: _Batch) -> None:
        """One ticket of each account in turn, until the batch is full."""
        while queue:
            moved = False
            for account in list(queue):
                line = queue[account]
                if not taken.accepts(line[0].command):
                    continue
                taken.add(line.popleft())
                moved = True
                del queue[account]
                if line:
                    queue[account] = line  # behind the others, also in the next batch
            if not moved:
                return


class _Batch:
    """What one transaction may carry."""

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
        # The second of two equal requests must find the first one's answer in the store.
        return self._once.isdisjoint(command.once_keys())

    def add(self, ticket: Ticket) -> None:
        self.tickets.append(ticket)
        self._bytes += ticket.command.size()
        self._rows += ticket.command.weight()
        self._once.update(ticket.command.once_keys())
