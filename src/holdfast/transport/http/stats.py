"""What this process has answered: counts by kind of request, how long they took, and a minute-by-minute history.

It is written for every answer, so that writing is a few additions; all sums are made by whoever reads. Only the event
loop's thread writes, and nothing here waits.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque

import msgspec

from holdfast.operations import OPERATIONS, Operation

MINUTE = 60
KEPT_MINUTES = 10_080
BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0)
"""Upper ends of the buckets in seconds; one more holds whatever took longer."""
OTHER = "other"
"""Probes, documents and paths that lead nowhere."""

_HEADS = {"elections": "election", "auth": "auth", "sessions": "session", "webhooks": "webhook", "mcp": "mcp"}
_V1 = {
    "jobs": "job", "tasks": "task", "recover": "task", "sessions": "session", "events": "event", "webhooks": "webhook",
    "keys": "account", "account": "account", "billing": "account",
}  # fmt: skip
_LOCK_VERBS = {"acquire", "release", "renew"}
KINDS = ("acquire", "auth", "election", "list", "release", "renew", "status",
         "job", "task", "session", "event", "account", "webhook", "mcp", OTHER)  # fmt: skip
OCTOSTORE_KINDS = KINDS[:7]


def kind_of(path: str) -> str:
    """Which of the few kinds a path belongs to; never anything that the caller chose."""
    head, _, rest = path[1:].partition("/")
    if head == "locks":
        verb = rest.rpartition("/")[2] if "/" in rest else ""
        return "list" if path == "/locks" else verb if verb in _LOCK_VERBS else "status"
    if head == "v1":
        return _V1.get(rest.partition("/")[0], OTHER)
    return _HEADS.get(head, OTHER)


class Tally:
    """The requests of one kind."""

    __slots__ = ("buckets", "longest", "seconds", "shortest", "statuses")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.statuses = [0] * 10
        """By the first digit of the status."""
        self.seconds = 0.0
        self.shortest = float("inf")
        self.longest = 0.0

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.buckets)

    @property
    def errors(self) -> int:
        """How many of them were refused or failed."""
        return sum(self.statuses[4:])

    def percentile(self, part: float) -> float:
        """Seconds within which that part of them was answered: the end of their bucket."""
        wanted, seen = part * self.count, 0
        for bound, count in zip(BOUNDS, self.buckets, strict=False):
            seen += count
            if seen >= wanted:
                return bound if self.count else 0.0
        return self.longest


class Minute(msgspec.Struct):
    """A minute that is over."""

    started: int
    """Unix seconds."""
    requests: int
    acquires: int
    releases: int
    live: int = 0
    """Leases that lived when somebody asked; 0 if nobody did."""


class Stats:
    """Counts since this process started."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.acquires = 0
        self.releases = 0
        self.tallies = {kind: Tally() for kind in KINDS}
        self.minutes: deque[Minute] = deque(maxlen=KEPT_MINUTES)
        self._by_operation = {operation.name: self.tallies[kind_of(operation.path)] for operation in OPERATIONS}
        self._before = (0, 0, 0)
        self._open_minute()

    def begin(self) -> float:
        """A request arrives: the moment, for `note`. Whoever comes first in a new minute closes the last one."""
        moment = time.perf_counter()
        if moment >= self._minute_ends:
            self.close_minute()
        return moment

    def note(self, operation: Operation | None, path: str, status: int, began: float) -> None:
        """An answer leaves."""
        seconds = time.perf_counter() - began
        known = None if operation is None else self._by_operation.get(operation.name)
        tally = known or self.tallies[kind_of(path)]
        tally.buckets[bisect_left(BOUNDS, seconds)] += 1
        tally.statuses[status // 100] += 1
        tally.seconds += seconds
        if seconds < tally.shortest:  # noqa: PLR1730 - min() would cost a call for every answer
            tally.shortest = seconds
        if seconds > tally.longest:  # noqa: PLR1730 - the same
            tally.longest = seconds

    def total(self) -> int:
        """Requests of every kind but the probes."""
        return sum(tally.count for kind, tally in self.tallies.items() if kind != OTHER)

    def uptime(self) -> int:
        """Whole seconds."""
        return int(time.monotonic() - self.started)

    def history(self, seconds: int) -> list[Minute]:
        """The minutes that are over and began within so many seconds."""
        if time.perf_counter() >= self._minute_ends:
            self.close_minute()
        since = time.time() - seconds
        return [minute for minute in self.minutes if minute.started >= since]

    def close_minute(self) -> None:
        """Write the running minute down and begin another. Minutes in which nobody came are left out."""
        now = (self.total(), self.acquires, self.releases)
        requests, acquires, releases = (after - before for after, before in zip(now, self._before, strict=True))
        self.minutes.append(Minute(self._minute, requests, acquires, releases))
        self._before = now
        self._open_minute()

    def _open_minute(self) -> None:
        moment = time.time()
        # A wall clock that was set back must not make time run backwards in the history.
        last = self.minutes[-1].started if self.minutes else 0
        self._minute = max(int(moment) // MINUTE * MINUTE, last)
        self._minute_ends = time.perf_counter() + MINUTE - moment % MINUTE
