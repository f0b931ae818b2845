"""Lines: whoever waits for a name is served in the order in which they came.

Waiting happens outside the batch. Only the head of a line tries again: when a commit here freed the
name, when another process may have, and when the holder's time runs out (the sweep frees it then).
A notice carries no data; the woken claim runs again and the store decides.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.core.errors import Draining, TooManyWaiters
from holdfast.core.row import Key
from holdfast.engine.backlog import Ticket
from holdfast.engine.command import Held

MAX_WAITERS = 1_000

Submit = Callable[[Ticket], None]
Deliver = Callable[[list[tuple[Ticket, Any]]], None]


class Line:
    """The waiters of one name."""

    __slots__ = ("again", "tickets", "trying")

    def __init__(self) -> None:
        self.tickets: deque[Ticket] = deque()
        self.trying = False
        """The head's claim is on its way through the engine."""
        self.again = False
        """The name was freed while it was."""


class Lines:
    """Every line of this process."""

    def __init__(self, submit: Submit, deliver: Deliver, attend: Callable[[bool], None]) -> None:
        self._submit = submit
        self._deliver = deliver
        self._attend = attend
        self._lock = threading.Lock()
        self._lines: dict[Key, Line] = {}
        self._draining = False
        self._timer = _Timer(self._run_out)

    def length(self, key: Key) -> int:
        """How many wait for a name in this process."""
        with self._lock:
            line = self._lines.get(key)
            return len(line.tickets) if line else 0

    def queue_behind(self, ticket: Ticket) -> bool:
        """Stand at the end of the line if there is one; a newcomer does not pass those who wait."""
        with self._lock:
            if ticket.line not in self._lines:
                return False
            self._stand(ticket)
        return True

    def held(self, ticket: Ticket, outcome: Held) -> None:
        """A claim with patience was told that somebody has it: stand in line, or keep its place there."""
        with self._lock:
            if not ticket.in_line:
                self._stand(ticket)
                return
            line = self._lines[ticket.line or ("", "", "")]
            if not ticket.last_try:
                line.trying = False
                retry, line.again = line.again, False
            else:
                retry = self._remove(ticket)
        if ticket.last_try:
            self._deliver([(ticket, outcome)])
        if retry:
            self.wake([ticket.line or ("", "", "")])

    def settled(self, ticket: Ticket) -> None:
        """Its claim was granted, or refused for good: it leaves, and the next one looks if there is reason to."""
        with self._lock:
            look = self._remove(ticket)
        if look:
            self.wake([ticket.line or ("", "", "")])

    def wake(self, keys: Iterable[Key]) -> None:
        """Let the heads of these lines try again."""
        heads = []
        with self._lock:
            for key in keys:
                line = self._lines.get(key)
                if line is None:
                    continue
                if line.trying:
                    line.again = True
                elif not line.tickets[0].last_try:
                    line.trying = True
                    heads.append(line.tickets[0])
        for head in heads:
            self._submit(head)

    def wake_all(self) -> None:
        """Another process may have freed anything."""
        with self._lock:
            keys = list(self._lines)
        self.wake(keys)

    def leave(self, ticket: Ticket) -> None:
        """Its caller went away."""
        with self._lock:
            if ticket.in_line:
                look = self._remove(ticket)
            else:
                return
        if look:
            self.wake([ticket.line or ("", "", "")])

    def drain(self) -> None:
        """Send everybody away with a hint to come back."""
        with self._lock:
            self._draining = True
            tickets = [ticket for line in self._lines.values() for ticket in line.tickets if not ticket.last_try]
            for ticket in tickets:
                self._remove(ticket)
        self._deliver([(ticket, Draining("this server is shutting down")) for ticket in tickets])

    def close(self) -> None:
        """Stop the timer."""
        self._timer.close()

    def _stand(self, ticket: Ticket) -> None:
        assert ticket.line is not None
        assert ticket.deadline is not None
        if self._draining:
            raise Draining("this server is shutting down")
        line = self._lines.setdefault(ticket.line, Line())
        if len(line.tickets) >= MAX_WAITERS:
            raise TooManyWaiters(f"{MAX_WAITERS} callers already wait for this name", retry_after=5)
        ticket.in_line = True
        line.tickets.append(ticket)
        self._timer.at(ticket.deadline, ticket)
        self._attend(True)  # noqa: FBT003 - see the store's contract

    def _remove(self, ticket: Ticket) -> bool:
        """Take a ticket out of its line. Whether the next head should look at once."""
        line = self._lines.get(ticket.line or ("", "", ""))
        if line is None or not ticket.in_line:
            return False
        was_head = line.tickets[0] is ticket
        line.tickets.remove(ticket)
        ticket.in_line = False
        if not line.tickets:
            del self._lines[ticket.line or ("", "", "")]
            if not self._lines:
                self._attend(False)  # noqa: FBT003 - see the store's contract
            return False
        if was_head and line.trying:
            # Its try is settled, or its caller is gone and the try will be: either way the next one may look.
            line.trying = line.again = False
            return True
        return False

    def _run_out(self, ticket: Ticket) -> None:
        """A waiter's patience ends: it tries one last time, so that the answer is fresh."""
        with self._lock:
            if not ticket.in_line or ticket.last_try:
                return
            line = self._lines[ticket.line or ("", "", "")]
            ticket.last_try = True
            if line.trying and line.tickets[0] is ticket:
                return  # the try under way is the last one
        self._submit(ticket)


class _Timer:
    """One thread for every waiter's patience."""

    def __init__(self, run_out: Callable[[Ticket], None]) -> None:
        self._run_out = run_out
        self._heap: list[tuple[float, int, Ticket]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="holdfast-patience", daemon=True)
        self._thread.start()

    def at(self, moment: float, ticket: Ticket) -> None:
        with self._changed:
            heapq.heappush(self._heap, (moment, next(self._order), ticket))
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (not self._heap or self._heap[0][0] > time.monotonic()):
                    self._changed.wait(self._heap[0][0] - time.monotonic() if self._heap else None)
                if self._closed:
                    return
                _, _, ticket = heapq.heappop(self._heap)
            self._run_out(ticket)
