"""What waits in front of a lane: holders' writes first, accounts in turn, never more than fits."""

from __future__ import annotations

from collections import deque
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from holdfast.core.errors import Draining, Overloaded
from holdfast.core.row import Key
from holdfast.engine.command import Command

MAX_BATCH = 256
MAX_BATCH_BYTES = 4 * 1024 * 1024
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
        "command",
        "deadline",
        "gone",
        "in_line",
        "last_try",
        "line",
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
        self.in_line = False
        self.last_try = False
        self.under_way = False
        """Its claim is on its way through the engine: it must not be sent a second time."""
        self.gone = False
        """Its caller went away: it must not stand in line any more."""


class Backlog:
    """A bounded queue that hands out batches.

    Callers put tickets into an inbox that needs no lock of ours; only the lane's own thread sorts them. A lock
    held while sorting cost every caller 80 µs, most of it spent on getting Python's lock back.
    """

    def __init__(self, max_batch: int = MAX_BATCH, max_queued: int = MAX_QUEUED) -> None:
        self._max_batch = max_batch
        self._max_queued = max_queued
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
        if not ticket.in_line and self._inbox.qsize() + self._sorted >= room:
            raise Overloaded("too many requests are waiting for the store")
        self._inbox.put(ticket)
        if self._finished:  # it was closed between the first line and the last
            self.finish()

    def take(self) -> list[Ticket] | None:
        """Whatever is queued, up to a batch; waits for the first. None once closed and empty."""
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
        if wait:
            self._append(self._inbox.get())
        for _ in range(self._inbox.qsize()):
            self._append(self._inbox.get())

    def _append(self, ticket: Ticket | None) -> None:
        if ticket is None:
            return
        queue = self._urgent if ticket.command.urgent else self._new
        line = queue.get(ticket.command.account)
        if line is None:
            line = queue[ticket.command.account] = deque()
        if ticket.in_line:
            line.appendleft(ticket)  # it has waited long enough
        else:
            line.append(ticket)
        self._sorted += 1

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
        self._once: set[tuple[str, str]] = set()

    def accepts(self, command: Command[Any]) -> bool:
        if len(self.tickets) >= self.limit or (self.tickets and self._bytes + command.size() > MAX_BATCH_BYTES):
            return False
        # The second of two equal requests must find the first one's answer in the store.
        return command.once is None or (command.account, command.once.key) not in self._once

    def add(self, ticket: Ticket) -> None:
        self.tickets.append(ticket)
        self._bytes += ticket.command.size()
        if ticket.command.once is not None:
            self._once.add((ticket.command.account, ticket.command.once.key))
