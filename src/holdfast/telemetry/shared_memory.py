"""Metrics in shared memory: one row for each worker process of a server, and one for the workers that have ended.

The memory is anonymous, so nothing is left of it when the last process has ended. Where it must be a file, its blocks
are written at once: touching a page of a sparse file when the disk is full would kill the process with a signal.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from array import array
from collections.abc import Callable
from typing import TypeVar

from holdfast.telemetry.kinds import Gauge
from holdfast.telemetry.metric_names import METRICS
from holdfast.telemetry.registry import CELL, Minute, Registry, merge_rows, offsets_of

KEPT_MINUTES = 10_080
MAX_TRIES = 1_000
METRICS_FD, METRICS_ROW = "HOLDFAST_METRICS_FD", "HOLDFAST_METRICS_ROW"

T = TypeVar("T")

_HEAD = 4
_STARTED, _SEQUENCE, _MINUTES = range(3)
"""The head: when the parent started; a sequence number that is odd while the parent writes; minutes written."""
_MINUTE = 4
_ENDED = 0
"""The row of the workers that have ended."""


class SharedRegistry:
    """The memory that a parent process creates and its workers share."""

    def __init__(self, descriptor: int, workers: int) -> None:
        self.descriptor = descriptor
        self._workers = workers
        self._map = mmap.mmap(descriptor, _size(workers))
        self._cells: memoryview[float] = memoryview(self._map).cast("d")
        self.started = self._cells[_STARTED]

    @classmethod
    def create(cls, workers: int) -> SharedRegistry:
        """Allocate the memory, in the parent; workers open it by its file descriptor."""
        registry = cls(_allocate(_size(workers)), workers)
        registry._cells[_STARTED] = registry.started = time.monotonic()
        return registry

    def row(self, worker: int) -> memoryview[float]:
        """The cells of a worker, which alone writes them."""
        return self._row(worker + 1)

    def _row(self, number: int) -> memoryview[float]:
        first = _HEAD + number * METRICS.size
        return self._cells[first : first + METRICS.size]

    def rows(self) -> list[list[float]]:
        """Every row. Read again while the parent moves an ended worker's values, so that none is counted twice."""
        return self._read_consistently(lambda: [list(self._row(number)) for number in range(self._workers + 1)])

    def total(self, offset: int) -> float:
        """The sum of one cell over all rows. It may be wrong for a moment while an ended worker's values are moved."""
        first = _HEAD + offset
        return sum(self._cells[first + number * METRICS.size] for number in range(self._workers + 1))

    def retire(self, worker: int) -> None:
        """Add an ended worker's counters to the row of ended workers, and clear its row. Only the parent calls this."""
        row, ended = self.row(worker), self._row(_ENDED)
        totals = merge_rows([list(ended), list(row)])
        self._cells[_SEQUENCE] += 1
        for metric in METRICS.metrics:
            for offset in offsets_of(metric):
                if not isinstance(metric, Gauge):
                    ended[offset] = totals[offset]
                row[offset] = 0.0
        self._cells[_SEQUENCE] += 1

    def write_minute(self, minute: Minute) -> None:
        """Append a past minute. Only the parent calls this."""
        count = int(self._cells[_MINUTES])
        self._cells[_SEQUENCE] += 1
        values = array("d", [minute.started, minute.requests, minute.acquires, minute.releases])
        first = self._minute_offset(count % KEPT_MINUTES)
        self._cells[first : first + _MINUTE] = memoryview(values)
        self._cells[_MINUTES] = count + 1
        self._cells[_SEQUENCE] += 1

    def minutes(self) -> list[Minute]:
        """Past minutes, oldest first."""
        return self._read_consistently(self._read_minutes)

    def _read_minutes(self) -> list[Minute]:
        count, found = int(self._cells[_MINUTES]), []
        for number in range(max(0, count - KEPT_MINUTES), count):
            first = self._minute_offset(number % KEPT_MINUTES)
            found.append(Minute(*map(int, self._cells[first : first + _MINUTE])))
        return found

    def _read_consistently(self, read: Callable[[], T]) -> T:
        """Read while the parent does not write (a seqlock). Gives up in the end: the parent may have been killed."""
        for _ in range(MAX_TRIES):
            sequence = self._cells[_SEQUENCE]
            found = read()
            if sequence % 2 == 0 and sequence == self._cells[_SEQUENCE]:
                return found
            time.sleep(0)
        return read()

    def _minute_offset(self, number: int) -> int:
        return _HEAD + (self._workers + 1) * METRICS.size + number * _MINUTE


def _allocate(size: int) -> int:
    """A file descriptor of zeroed memory: anonymous where the system has that, else an unlinked file."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("holdfast-metrics")
        os.ftruncate(descriptor, size)
        return descriptor
    try:
        with tempfile.TemporaryFile() as file:
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())  # a full disk is an error here, not later
            return os.dup(file.fileno())
    except OSError as error:
        folder = tempfile.gettempdir()
        raise OSError(error.errno, f"no space for the workers' metrics: {error.strerror}", folder) from error


def _size(workers: int) -> int:
    return CELL * (_HEAD + (workers + 1) * METRICS.size + KEPT_MINUTES * _MINUTE)


def open_registry(workers: int) -> Registry:
    """The registry of this process: its row of the memory that its parent created, or private memory."""
    descriptor, row = os.environ.get(METRICS_FD), os.environ.get(METRICS_ROW)
    if descriptor is None or row is None:
        return Registry()
    shared = SharedRegistry(int(descriptor), workers)
    return Registry(shared.row(int(row)), shared)
