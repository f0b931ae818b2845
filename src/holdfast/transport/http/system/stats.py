"""Request statistics of this process or of all workers: counts and durations by kind, and a history by minute.

Every answer is counted, so counting is a few additions on this process's row of the registry; sums are computed when
they are read. Only the event loop's thread writes these cells, and nothing here blocks.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from bisect import bisect_left
from collections import deque
from pathlib import Path

import msgspec

from holdfast.engine.engine import Engine
from holdfast.operations.operation import Operation
from holdfast.operations.table import OPERATIONS
from holdfast.telemetry import metric_names
from holdfast.telemetry.metric_names import KINDS, TIMES
from holdfast.telemetry.registry import Minute, Registry
from holdfast.telemetry.shared_memory import KEPT_MINUTES

MINUTE = 60
BOUNDS = TIMES
"""Upper bounds of the buckets in seconds; one more bucket holds longer durations."""
OTHER = "other"
"""Probes, documents and unknown paths."""

_HEADS = {"elections": "election", "auth": "auth", "sessions": "session", "webhooks": "webhook", "mcp": "mcp"}
_V1 = {
    "jobs": "job", "heartbeats": "job", "tasks": "task", "recover": "task", "sessions": "session", "events": "event",
    "webhooks": "webhook",
    "keys": "account", "account": "account", "billing": "account",
}  # fmt: skip
_LOCK_VERBS = {"acquire", "release", "renew"}
OCTOSTORE_KINDS = KINDS[:7]


def kind_of(path: str) -> str:
    """The kind of request, from a fixed list; it never contains text that the caller chose."""
    head, _, rest = path[1:].partition("/")
    if head == "locks":
        verb = rest.rpartition("/")[2] if "/" in rest else ""
        return "list" if path == "/locks" else verb if verb in _LOCK_VERBS else "status"
    if head == "v1":
        return _V1.get(rest.partition("/")[0], OTHER)
    return _HEADS.get(head, OTHER)


class KindStats(msgspec.Struct):
    """Counts and durations of one kind of request."""

    buckets: list[float] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    statuses: list[float] = msgspec.field(default_factory=lambda: [0] * 10)
    """By the first digit of the status."""
    seconds: float = 0.0
    shortest: float = 0.0
    longest: float = 0.0

    @classmethod
    def read(cls, cells: list[float], kind: str) -> KindStats:
        """Read the numbers of a kind from the registry's cells."""
        cell = metric_names.REQUEST_SECONDS.at(kind)
        *buckets, seconds = cells[cell : cell + metric_names.REQUEST_SECONDS.width]
        statuses = [cells[metric_names.REQUESTS.at(kind, status)] for status in metric_names.STATUSES]
        return cls(
            buckets, statuses, seconds, cells[metric_names.SHORTEST.at(kind)], cells[metric_names.LONGEST.at(kind)]
        )

    @property
    def count(self) -> int:
        """The number of requests."""
        return int(sum(self.buckets))

    @property
    def errors(self) -> int:
        """The number of requests that were refused or failed."""
        return int(sum(self.statuses[4:]))

    def percentile(self, part: float) -> float:
        """Seconds within which that share of requests was answered: the upper bound of its bucket."""
        target, cumulative = part * self.count, 0.0
        for bound, count in zip(BOUNDS, self.buckets, strict=False):
            cumulative += count
            if cumulative >= target:
                return bound if self.count else 0.0
        return self.longest


class Stats:
    """Statistics since the start, of this process or of all workers that share a registry."""

    def __init__(self, registry: Registry | None = None) -> None:
        self.registry = registry or Registry()
        self.minutes: deque[Minute] = deque(maxlen=KEPT_MINUTES)
        """Finished minutes; with several workers the parent process records them."""
        self._cells_of = {kind: _KindCells(kind) for kind in KINDS}
        self._by_operation = {operation.name: self._cells_of[kind_of(operation.path)] for operation in OPERATIONS}
        self._before = (0, 0, 0)
        self._open_minute()

    def begin(self) -> float:
        """Begin a request; returns the time for `note`. The first request of a new minute closes the last one."""
        moment = time.perf_counter()
        if moment >= self._minute_ends:
            self.close_minute()
        return moment

    def note(self, operation: Operation | None, path: str, status: int, began: float) -> float:
        """Count an answer; returns how long it took."""
        seconds = time.perf_counter() - began
        kind = None if operation is None else self._by_operation.get(operation.name)
        kind_cells, cells = kind or self._cells_of[kind_of(path)], self.registry.cells
        cells[kind_cells.buckets + bisect_left(BOUNDS, seconds)] += 1
        cells[kind_cells.seconds] += seconds
        cells[kind_cells.statuses + status // 100] += 1
        if not 0 < cells[kind_cells.shortest] <= seconds:
            cells[kind_cells.shortest] = seconds
        if seconds > cells[kind_cells.longest]:  # noqa: PLR1730 - max() would cost a call for every answer
            cells[kind_cells.longest] = seconds
        return seconds

    @property
    def acquires(self) -> int:
        """Locks and leaderships granted or kept."""
        return int(self.registry.read()[_ACQUIRES])

    @property
    def releases(self) -> int:
        """Locks released and leaderships resigned."""
        return int(self.registry.read()[_RELEASES])

    def acquired(self) -> None:
        """Count a lock or leadership that was granted or kept."""
        self.registry.cells[_ACQUIRES] += 1

    def released(self) -> None:
        """Count a lock that was released or a leadership that was resigned."""
        self.registry.cells[_RELEASES] += 1

    def total(self) -> int:
        """Requests of every kind but the probes."""
        return totals(self.registry.read())[0]

    def uptime(self) -> int:
        """Whole seconds since the start."""
        return int(time.monotonic() - self.registry.started)

    def history(self, seconds: int) -> list[Minute]:
        """The finished minutes that began within the last `seconds`."""
        if time.perf_counter() >= self._minute_ends:
            self.close_minute()
        since = time.time() - seconds
        minutes = self.minutes if self.registry.group is None else self.registry.group.minutes()
        return [minute for minute in minutes if minute.started >= since]

    def close_minute(self) -> Minute:
        """Record the current minute and begin the next."""
        now = totals(self.registry.read())
        requests, acquires, releases = (after - before for after, before in zip(now, self._before, strict=True))
        minute = Minute(self._minute, requests, acquires, releases)
        self.minutes.append(minute)
        self._before = now
        self._open_minute()
        return minute

    def minute_is_over(self) -> bool:
        """Whether the current minute has ended."""
        return time.perf_counter() >= self._minute_ends

    def _open_minute(self) -> None:
        moment = time.time()
        # Minutes in the history must not go backwards when the wall clock is set back.
        last = self.minutes[-1].started if self.minutes else 0
        self._minute = max(int(moment) // MINUTE * MINUTE, last)
        self._minute_ends = time.perf_counter() + MINUTE - moment % MINUTE


class _KindCells:
    """Positions of one kind's numbers in the registry's cells."""

    __slots__ = ("buckets", "longest", "seconds", "shortest", "statuses")

    def __init__(self, kind: str) -> None:
        self.buckets = metric_names.REQUEST_SECONDS.at(kind)
        self.seconds = self.buckets + len(BOUNDS) + 1
        self.statuses = metric_names.REQUESTS.at(kind, metric_names.STATUSES[0])
        self.shortest = metric_names.SHORTEST.at(kind)
        self.longest = metric_names.LONGEST.at(kind)


_ACQUIRES, _RELEASES = metric_names.LOCK_ACQUIRES.at(), metric_names.LOCK_RELEASES.at()


def totals(cells: list[float]) -> tuple[int, int, int]:
    """(requests other than probes, locks granted or kept, locks released)."""
    requests = sum(KindStats.read(cells, kind).count for kind in KINDS if kind != OTHER)
    return requests, int(cells[_ACQUIRES]), int(cells[_RELEASES])


def sample_process(engine: Engine) -> None:
    """Write current values to the registry: queue lengths and memory."""
    engine.sample()
    engine.registry.set(metric_names.WORKERS, to=1)
    engine.registry.set(metric_names.MEMORY, to=memory_bytes())


def memory_bytes() -> int:
    """Resident memory of this process; its peak where the system does not report the current size."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
