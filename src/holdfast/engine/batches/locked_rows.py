"""Commands whose rows another transaction has locked: set aside, so that others need not wait for them.

A batch waits for its locks only briefly. If that is not enough it is halved until the commands that need a locked row
are found. The others commit; these are tried again every 50 ms, until they get their rows or their time is over.
"""

from __future__ import annotations

import time
from collections import deque

from holdfast.engine.ticket import Ticket

SHORT_WAIT = 0.05
"""Seconds that half of a batch waits for a lock."""
SHORTEST_WAIT = 0.001
MAX_SHORT_WAITS = 10
"""After so many halves that met a locked row, the other halves of the batch get the shortest wait."""
LOCK_RETRY_SECONDS = 5.0
"""How long a command is tried again before its caller gets an error."""
RETRY_SECONDS = 0.05
MAX_RETRIES = 16
"""Commands tried again at once, so that new batches need not wait for many of them."""


class LockedRows:
    """The tickets that a lane has set aside, in the order in which they will be tried again."""

    def __init__(self) -> None:
        self._tickets: deque[Ticket] = deque()
        self._short_waits = 0

    @property
    def pause(self) -> float | None:
        """Seconds until the next try; None if nothing was set aside."""
        return RETRY_SECONDS if self._tickets else None

    def begin_batch(self) -> None:
        """Start counting the waits of a new batch."""
        self._short_waits = 0

    def next_wait(self, last: float | None) -> float:
        """How long half of a batch that waited so long (None: as a whole batch does) may wait for a lock."""
        self._short_waits += 1
        return SHORTEST_WAIT if last == SHORTEST_WAIT or self._short_waits > MAX_SHORT_WAITS else SHORT_WAIT

    def set_aside(self, ticket: Ticket) -> bool:
        """Try the ticket again later; False if its time is over, or if its command is not worth waiting for."""
        now = time.monotonic()
        if ticket.locked_until is None:
            ticket.locked_until = now + LOCK_RETRY_SECONDS
        if now >= ticket.locked_until or not ticket.command.waits_for_locks:
            return False
        self._tickets.append(ticket)
        return True

    def take(self) -> list[Ticket]:
        """The next tickets to try again, of several under one Idempotency-Key only the first."""
        taken: list[Ticket] = []
        left: deque[Ticket] = deque()
        keys: set[tuple[str, str]] = set()
        for ticket in self._tickets:
            once_keys = ticket.command.once_keys()
            if len(taken) < MAX_RETRIES and keys.isdisjoint(once_keys):
                taken.append(ticket)
                keys.update(once_keys)
            else:
                left.append(ticket)  # a repeated request must find the answer of the first in the store
        self._tickets = left
        return taken

    def take_all(self) -> list[Ticket]:
        """Every ticket: the lane ends."""
        tickets, self._tickets = list(self._tickets), deque()
        return tickets
