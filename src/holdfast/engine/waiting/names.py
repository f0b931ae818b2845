"""Lines: whoever waits for a name is served in the order in which they came.

Waiting happens outside the batch. Only the head of a line tries again: when a commit here freed the
name, when another process may have, and when the holder's time runs out (the sweep frees it then).
A notice carries no data; the woken claim runs again and the store decides.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from holdfast.core.errors import Draining, TooManyWaiters
from holdfast.core.row import Key
from holdfast.engine.backlog import Ticket
from holdfast.engine.command import Held
from holdfast.engine.timer import Timer

MAX_WAITERS = 1_000
JUST_AFTER = 0.002
"""A little later than the moment itself, which is not over yet at that moment."""

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

    def __init__(self, submit: Submit, deliver: Deliver, attend: Callable[[bool], None], timer: Timer) -> None:
        self._submit = submit
        self._deliver = deliver
        self._attend = attend
        self._lock = threading.Lock()
        self._lines: dict[Key, Line] = {}
        self._draining = False
        self._timer = timer

    def length(self, key: Key) -> int:
        """How many wait for a name in this process."""
        with self._lock:
            line = self._lines.get(key)
            return len(line.tickets) if line else 0

    def size(self, account: str = "") -> int:
        """How many wait for any name, of one account or of all."""
        with self._lock:
            return sum(len(line.tickets) for key, line in self._lines.items() if account in {"", key[1]})

    def stand_for(self, key: Key | None) -> bool:
        """Whether anybody waits for that name here; asked without the lock, because every claim asks it."""
        return key in self._lines

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
            ticket.under_way = False
            if ticket.gone:
                return
            if not ticket.in_line and not ticket.last_try:
                self._stand(ticket)
                return
            if ticket.last_try:
                look = self._remove(ticket)
            else:
                line = self._lines[_key(ticket)]
                line.trying = False
                look, line.again = line.again, False
        if ticket.last_try:
            draining = Draining("this server is shutting down") if self._draining else None
            self._deliver([(ticket, draining or outcome)])
        if look:
            self.wake([_key(ticket)])

    def settled(self, ticket: Ticket) -> None:
        """Its claim was granted, or refused for good: it leaves, and the next one looks if there is reason to."""
        with self._lock:
            ticket.under_way = False
            look = self._remove(ticket)
        if look:
            self.wake([_key(ticket)])

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
                    continue
                head, line.trying = line.tickets[0], True
                if head.under_way:  # its last try, sent while it stood further back
                    line.again = True
                else:
                    head.under_way = True
                    heads.append(head)
        for head in heads:
            self._submit(head)

    def wake_all(self) -> None:
        """Another process may have freed anything."""
        with self._lock:
            keys = list(self._lines)
        self.wake(keys)

    def leave(self, ticket: Ticket) -> None:
        """Its caller went away, whether it stands in line already or not yet."""
        with self._lock:
            ticket.gone = True
            look = self._remove(ticket)
        if look:
            self.wake([_key(ticket)])

    def drain(self) -> None:
        """Send everybody away with a hint to come back; whose claim is on its way is answered by that."""
        with self._lock:
            self._draining = True
            tickets = []
            for line in self._lines.values():
                if line.trying:
                    line.tickets[0].last_try = True
                tickets += [ticket for ticket in line.tickets if not ticket.last_try]
            for ticket in tickets:
                self._remove(ticket)
        self._deliver([(ticket, Draining("this server is shutting down")) for ticket in tickets])

    def look_later(self, key: Key, seconds: float) -> None:
        """The name is free for the taking then: let the head of its line try."""
        self._timer.at(time.monotonic() + seconds + JUST_AFTER, partial(self.wake, [key]))

    def _stand(self, ticket: Ticket) -> None:
        assert ticket.line is not None
        assert ticket.deadline is not None
        if self._draining:
            raise Draining("this server is shutting down")
        line = self._lines.setdefault(ticket.line, Line())
        if len(line.tickets) >= MAX_WAITERS:
            raise TooManyWaiters(f"{MAX_WAITERS} callers already wait for this name", retry_after=5)
        ticket.in_line = True
        ticket.command = ticket.while_waiting
        line.tickets.append(ticket)
        ticket.alarm = self._timer.at(ticket.deadline, partial(self._run_out, ticket))
        self._attend(True)  # noqa: FBT003 - see the store's contract

    def _remove(self, ticket: Ticket) -> bool:
        """Take a ticket out of its line. Whether the next head should look at once."""
        line = self._lines.get(_key(ticket))
        if line is None or not ticket.in_line:
            return False
        was_head = line.tickets[0] is ticket
        line.tickets.remove(ticket)
        ticket.in_line = False
        if ticket.alarm is not None:
            ticket.alarm.cancel()
        if not line.tickets:
            del self._lines[_key(ticket)]
            if not self._lines:
                self._attend(False)  # noqa: FBT003 - see the store's contract
            return False
        if not was_head:
            return False
        # Its try is settled, or its caller is gone and the try will be: the next one looks if there is reason to.
        look, line.trying, line.again = line.trying or line.again, False, False
        return look

    def _run_out(self, ticket: Ticket) -> None:
        """A waiter's patience ends: it tries one last time, so that the answer is fresh."""
        with self._lock:
            if not ticket.in_line or ticket.last_try:
                return
            line = self._lines[_key(ticket)]
            ticket.last_try = True
            if ticket.under_way:
                return  # the try under way is the last one
            ticket.under_way = True
            line.trying = line.trying or line.tickets[0] is ticket
        self._submit(ticket)


def _key(ticket: Ticket) -> Key:
    assert ticket.line is not None
    return ticket.line
