"""Metrics registry: one row of cells per process.

Writing does not wait for other processes: a cell belongs to one process, and within it to one thread or to the holder
of the lock. Reading combines the rows of all processes.
"""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import MutableSequence
from typing import Protocol, TypeAlias

import msgspec

from holdfast.telemetry.kinds import LEAST, MOST, Counter, Gauge, Metric
from holdfast.telemetry.metric_names import METRICS

Cells: TypeAlias = "MutableSequence[float] | memoryview[float]"

CELL = 8
"""Bytes."""


class Minute(msgspec.Struct):
    """Totals of one past minute."""

    started: int
    """Unix seconds."""
    requests: int
    acquires: int
    releases: int
    live: int = 0
    """Live leases when it was last queried; 0 if it was not."""


class ProcessGroup(Protocol):
    """The metrics of all worker processes of one server."""

    started: float

    def rows(self) -> list[list[float]]:
        """The cells of every process, and the totals of those that have ended."""

    def minutes(self) -> list[Minute]:
        """Past minutes, oldest first."""

    def total(self, offset: int) -> float:
        """The sum of one cell over all processes, as cheap as possible."""


class Registry:
    """The metrics of one process."""

    def __init__(self, cells: Cells | None = None, group: ProcessGroup | None = None) -> None:
        self.cells: Cells = array("d", bytes(METRICS.size * CELL)) if cells is None else cells
        self.lock = threading.Lock()
        """For cells that several threads write."""
        self.group = group
        self.started = time.monotonic() if group is None else group.started

    def add(self, metric: Counter | Gauge, *labels: str, by: float = 1) -> None:
        """Add to a counter or gauge."""
        offset = metric.at(*labels)
        with self.lock:
            self.cells[offset] += by

    def set(self, gauge: Gauge, *labels: str, to: float) -> None:
        """Set a gauge."""
        self.cells[gauge.at(*labels)] = to

    def total(self, counter: Counter) -> float:
        """A counter without labels, over all processes; cheap enough for every request."""
        offset = counter.at()
        return self.cells[offset] if self.group is None else self.group.total(offset)

    def read(self) -> list[float]:
        """All cells, combined over all processes."""
        return list(self.cells) if self.group is None else merge_rows(self.group.rows())


def observe_at(cells: Cells, offset: int, bounds: tuple[float, ...], value: float) -> None:
    """Add a value to the histogram at an offset; the caller must be the only writer of these cells."""
    cells[offset + bisect_left(bounds, value)] += 1
    cells[offset + len(bounds) + 1] += value


def merge_rows(rows: list[list[float]]) -> list[float]:
    """Combine the rows of several processes."""
    sums = [sum(column) for column in zip(*rows, strict=True)]
    for metric in METRICS.metrics:
        if metric.merge in {LEAST, MOST}:
            choose = min if metric.merge == LEAST else max
            for offset in offsets_of(metric):
                sums[offset] = choose((row[offset] for row in rows if row[offset]), default=0.0)
    return sums


def offsets_of(metric: Metric) -> range:
    """The offsets of a metric's cells."""
    return range(metric.first, metric.first + metric.size)
