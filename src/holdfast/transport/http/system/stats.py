"""What was answered, here or by all workers of our parent: counts by kind, times, and a history by minutes.

It is written for every answer, so that writing is a few additions on this process's row of the board; all sums are
made by whoever reads. Only the event loop's thread writes these cells, and nothing here waits.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque

import msgspec

from holdfast.operations.table import OPERATIONS, Operation
from holdfast.telemetry import metric_names
from holdfast.telemetry.metric_names import KINDS, TIMES
from holdfast.telemetry.registry import Minute, Registry
from holdfast.telemetry.shared_memory import KEPT_MINUTES

MINUTE = 60
BOUNDS = TIMES
"""Upper ends of the buckets in seconds; one more holds whatever took longer."""
OTHER = "other"
"""Probes, documents and paths that lead nowhere."""

_HEADS = {"elections": "election", "auth": "auth", "sessions": "session", "webhooks": "webhook", "mcp": "mcp"}
_V1 = {
    "jobs": "job", "tasks": "task", "recover": "task", "sessions": "session", "events": "event", "webhooks": "webhook",
    "keys": "account", "account": "account", "billing": "account",
}  # fmt: skip
_LOCK_VERBS = {"acquire", "release", "renew"}
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


class Tally(msgspec.Struct):
    """The requests of one kind, as somebody read them."""

    buckets: list[float] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    statuses: list[float] = msgspec.field(default_factory=lambda: [0] * 10)
    """By the first digit of the status."""
    seconds: float = 0.0
    shortest: float = 0.0
    longest: float = 0.0

    @classmethod
    def read(cls, cells: list[float], kind: str) -> Tally:
        """What the cells tell of a kind."""
        place = metric_names.REQUEST_SECONDS.at(kind)
        *buckets, seconds = cells[place : place + metric_names.REQUEST_SECONDS.width]
        statuses = [cells[metric_names.REQUESTS.at(kind, status)] for status in metric_names.STATUSES]
        return cls(
            buckets, statuses, seconds, cells[metric_names.SHORTEST.at(kind)], cells[metric_names.LONGEST.at(kind)]
        )

    @property
    def count(self) -> int:
        """How many there were."""
        return int(sum(self.buckets))

    @property
    def errors(self) -> int:
        """How many of them were refused or failed."""
        return int(sum(self.statuses[4:]))

    def percentile(self, part: float) -> float:
        """Seconds within which that part of them was answered: the end of their bucket."""
        wanted, seen = part * self.count, 0.0
        for bound, count in zip(BOUNDS, self.buckets, strict=False):
            seen += count
            if seen >= wanted:
                return bound if self.count else 0.0
        return self.longest


class Stats:
    """Counts since the start: of this process, or of the parent that shares a board with its workers."""

    def __init__(self, board: Registry | None = None) -> None:
        self.board = board or Registry()
        self.minutes: deque[Minute] = deque(maxlen=KEPT_MINUTES)
        """Those that are over; with several workers it is their parent who writes minutes down."""
        self._places = {kind: _Places(kind) for kind in KINDS}
        self._by_operation = {operation.name: self._places[kind_of(operation.path)] for operation in OPERATIONS}
        self._before = (0, 0, 0)
        self._open_minute()

    def begin(self) -> float:
        """A request arrives: the moment, for `note`. Whoever comes first in a new minute closes the last one."""
        moment = time.perf_counter()
        if moment >= self._minute_ends:
            self.close_minute()
        return moment

    def note(self, operation: Operation | None, path: str, status: int, began: float) -> float:
        """An answer leaves; how long it took."""
        seconds = time.perf_counter() - began
        known = None if operation is None else self._by_operation.get(operation.name)
        places, cells = known or self._places[kind_of(path)], self.board.cells
        cells[places.buckets + bisect_left(BOUNDS, seconds)] += 1
        cells[places.seconds] += seconds
        cells[places.statuses + status // 100] += 1
        if not 0 < cells[places.shortest] <= seconds:
            cells[places.shortest] = seconds
        if seconds > cells[places.longest]:  # noqa: PLR1730 - max() would cost a call for every answer
            cells[places.longest] = seconds
        return seconds

    @property
    def acquires(self) -> int:
        """Locks and leaderships granted or kept."""
        return int(self.board.read()[_ACQUIRES])

    @property
    def releases(self) -> int:
        """Locks released and leaderships resigned."""
        return int(self.board.read()[_RELEASES])

    def acquired(self) -> None:
        """One more was granted or kept."""
        self.board.cells[_ACQUIRES] += 1

    def released(self) -> None:
        """One more was given back."""
        self.board.cells[_RELEASES] += 1

    @property
    def tallies(self) -> dict[str, Tally]:
        """The requests of each kind."""
        cells = self.board.read()
        return {kind: Tally.read(cells, kind) for kind in KINDS}

    def total(self) -> int:
        """Requests of every kind but the probes."""
        return totals(self.board.read())[0]

    def uptime(self) -> int:
        """Whole seconds."""
        return int(time.monotonic() - self.board.started)

    def history(self, seconds: int) -> list[Minute]:
        """The minutes that are over and began within so many seconds."""
        if time.perf_counter() >= self._minute_ends:
            self.close_minute()
        since = time.time() - seconds
        minutes = self.minutes if self.board.together is None else self.board.together.minutes()
        return [minute for minute in minutes if minute.started >= since]

    def close_minute(self) -> Minute:
        """Write the running minute down and begin another. Minutes in which nobody came are left out."""
        now = totals(self.board.read())
        requests, acquires, releases = (after - before for after, before in zip(now, self._before, strict=True))
        minute = Minute(self._minute, requests, acquires, releases)
        self.minutes.append(minute)
        self._before = now
        self._open_minute()
        return minute

    def minute_is_over(self) -> bool:
        """Whether the running minute is to be closed."""
        return time.perf_counter() >= self._minute_ends

    def _open_minute(self) -> None:
        moment = time.time()
        # A wall clock that was set back must not make time run backwards in the history.
        last = self.minutes[-1].started if self.minutes else 0
        self._minute = max(int(moment) // MINUTE * MINUTE, last)
        self._minute_ends = time.perf_counter() + MINUTE - moment % MINUTE


class _Places:
    """Where the numbers of one kind of request stand."""

    __slots__ = ("buckets", "longest", "seconds", "shortest", "statuses")

    def __init__(self, kind: str) -> None:
        self.buckets = metric_names.REQUEST_SECONDS.at(kind)
        self.seconds = self.buckets + len(BOUNDS) + 1
        self.statuses = metric_names.REQUESTS.at(kind, metric_names.STATUSES[0])
        self.shortest = metric_names.SHORTEST.at(kind)
        self.longest = metric_names.LONGEST.at(kind)


_ACQUIRES, _RELEASES = metric_names.LOCK_ACQUIRES.at(), metric_names.LOCK_RELEASES.at()


def totals(cells: list[float]) -> tuple[int, int, int]:
    """(requests of every kind but the probes, locks granted or kept, locks given back)."""
    requests = sum(Tally.read(cells, kind).count for kind in KINDS if kind != OTHER)
    return requests, int(cells[_ACQUIRES]), int(cells[_RELEASES])
