"""What waits in front of a lane: holders' writes first, accounts in turn, never more than fits."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Protocol

from holdfast.core.errors import Draining, Overloaded
from holdfast.core.row import Key
from holdfast.engine.command import Command

MAX_BATCH = 256
MAX_BATCH_BYTES = 4 * 1024 * 1024
MAX_QUEUED = 20_000


class Sink(Protocol):
    """Where replies go. A whole batch is delivered in one call."""

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        """Hand each outcome, or the exception that stands for it, to whoever waits for it."""


class Ticket:
    """A command on its way, and where its reply goes."""

    __slots__ = ("command", "deadline", "in_line", "last_try", "line", "sink", "slot")

    def __init__(self, command: Command[Any], sink: Sink, slot: Any = None, deadline: float | None = None) -> None:
        self.command = command
        self.sink = sink
        self.slot = slot
        self.deadline = deadline
        """Until when, by the monotonic clock, its caller will wait in line; None for no patience."""
        self.line: Key | None = None if deadline is None else command.line()
        self.in_line = False
        self.last_try = False


class Backlog:
    """A bounded queue that hands out batches."""

    def __init__(self, max_batch: int = MAX_BATCH, max_queued: int = MAX_QUEUED) -> None:
        self._max_batch = max_batch
        self._max_queued = max_queued
        self._ready = threading.Condition(threading.Lock())
        self._urgent: dict[str, deque[Ticket]] = {}
        self._new: dict[str, deque[Ticket]] = {}
        self._size = 0
        self._closed = False
        self._idle = False

    def put(self, ticket: Ticket, *, first: bool = False) -> None:
        """Queue a ticket; `first` is for one that has waited in line already."""
        with self._ready:
            if self._closed:
                raise Draining("this server is shutting down")
            if self._size >= self._max_queued:
                raise Overloaded("too many requests are waiting for the store")
            self._append(ticket, first=first)
            if self._idle:
                self._ready.notify()

    def take(self) -> list[Ticket] | None:
        """Whatever is queued, up to a batch; waits for the first. None once closed and empty."""
        with self._ready:
            while not self._size:
                if self._closed:
                    return None
                self._idle = True
                self._ready.wait()
                self._idle = False
            batch: list[Ticket] = []
            # New work keeps a quarter of each batch, so that renewals cannot starve it.
            reserved = self._max_batch // 4 if self._new else 0
            taken = _Batch(batch, self._max_batch - reserved)
            self._pull(self._urgent, taken)
            taken.limit = self._max_batch
            self._pull(self._new, taken)
            self._pull(self._urgent, taken)
            self._size -= len(batch)
            return batch

    def close(self) -> None:
        """Take nothing more; what is queued is still handed out."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()

    def _append(self, ticket: Ticket, *, first: bool) -> None:
        queue = self._urgent if ticket.command.urgent else self._new
        line = queue.setdefault(ticket.command.account, deque())
        if first:
            line.appendleft(ticket)
        else:
            line.append(ticket)
        self._size += 1

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
                if not line:
                    del queue[account]
            if not moved:
                return


class _Batch:
    """What one transaction may carry."""

    def __init__(self, tickets: list[Ticket], limit: int) -> None:
        self.tickets = tickets
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
