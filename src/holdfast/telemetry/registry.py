"""Where numbers are written: one row of cells a process.

Nobody waits to write: a cell belongs to one process, and within it to one thread or to whoever holds the lock. Whoever
reads adds the rows of all processes up.
"""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import MutableSequence
from typing import Protocol, TypeAlias

import msgspec

from holdfast.telemetry.kinds import LEAST, MOST, Counter, Gauge, Histogram, Metric
from holdfast.telemetry.metric_names import HOLDFAST_API

Cells: TypeAlias = "MutableSequence[float] | memoryview[float]"

CELL = 8
"""Bytes."""


class Minute(msgspec.Struct):
    """A minute that is over."""

    started: int
    """Unix seconds."""
    requests: int
    acquires: int
    releases: int
    live: int = 0
    """Leases that lived when somebody asked; 0 if nobody did."""


class Together(Protocol):
    """Whoever knows what other processes have counted."""

    started: float

    def rows(self) -> list[list[float]]:
        """The cells of every process, and of those that have died."""

    def minutes(self) -> list[Minute]:
        """Those that are over, oldest first."""


class Registry:
    """The numbers of one process."""

    def __init__(self, cells: Cells | None = None, together: Together | None = None) -> None:
        self.cells: Cells = array("d", bytes(HOLDFAST_API.size * CELL)) if cells is None else cells
        self.lock = threading.Lock()
        """For cells that several threads write."""
        self.together = together
        self.started = time.monotonic() if together is None else together.started

    def add(self, metric: Counter | Gauge, *labels: str, by: float = 1) -> None:
        """So many more."""
        place = metric.at(*labels)
        with self.lock:
            self.cells[place] += by

    def set(self, gauge: Gauge, *labels: str, to: float) -> None:
        """So many now."""
        self.cells[gauge.at(*labels)] = to

    def observe(self, histogram: Histogram, value: float, *labels: str) -> None:
        """One more of that size."""
        place = histogram.at(*labels)
        with self.lock:
            note(self.cells, place, histogram.bounds, value)

    def read(self) -> list[float]:
        """All cells, of all processes together."""
        return list(self.cells) if self.together is None else merged(self.together.rows())


def note(cells: Cells, place: int, bounds: tuple[float, ...], value: float) -> None:
    """Put a value into the histogram at a place; the caller sees to it that nobody else writes there."""
    cells[place + bisect_left(bounds, value)] += 1
    cells[place + len(bounds) + 1] += value


def merged(rows: list[list[float]]) -> list[float]:
    """What several rows say together."""
    sums = [sum(column) for column in zip(*rows, strict=True)]
    for metric in HOLDFAST_API.metrics:
        if metric.merge in {LEAST, MOST}:
            choose = min if metric.merge == LEAST else max
            for place in span(metric):
                sums[place] = choose((row[place] for row in rows if row[place]), default=0.0)
    return sums


def span(metric: Metric) -> range:
    """The places of a metric."""
    return range(metric.first, metric.first + metric.size)
