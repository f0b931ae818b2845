"""Kinds of numbers, and where each of them stands on a board. Every series is known before anything runs.

Labels have few values, all listed beforehand: so a number is a place in an array, writing it costs next to nothing,
processes that share a board agree on every place, and no caller can make a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TypeVar

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
SUM, LEAST, MOST = "sum", "least", "most"
"""What the numbers of several processes are together. For the least, 0 means that there is none yet."""

Labels = dict[str, str]
M = TypeVar("M", bound="Metric")


class Metric:
    """Numbers that mean the same thing, one for each combination of labels."""

    kind = COUNTER
    width = 1
    """Cells that one series takes."""

    def __init__(
        self, name: str, help: str, first: int, labels: dict[str, tuple[str, ...]], *, merge: str, shown: bool
    ) -> None:
        self.name = name
        self.help = help
        self.first = first
        self.labels = {label.rstrip("_"): values for label, values in labels.items()}
        """Words that Python keeps for itself are declared with an underscore behind them."""
        self.merge = merge
        self.shown = shown
        """Whether scrapers see it; some numbers are only there for other pages."""
        self._places = {values: first + self.width * step for step, values in enumerate(product(*labels.values()))}

    def at(self, *values: str) -> int:
        """The place of one series; label values in the order in which they were declared."""
        return self._places[values]

    def series(self) -> Iterator[tuple[Labels, int]]:
        """Every series and its place."""
        for values, place in self._places.items():
            yield dict(zip(self.labels, values, strict=True)), place

    @property
    def size(self) -> int:
        """Cells that all of them take."""
        return self.width * len(self._places)


class Counter(Metric):
    """Only grows. What a process counted stays when it dies."""


class Gauge(Metric):
    """How much there is just now. It goes with its process."""

    kind = GAUGE


class Histogram(Metric):
    """How many were at most so large: a cell a bucket, one for what was larger, one for the sum."""

    kind = HISTOGRAM

    def __init__(
        self, name: str, help: str, first: int, labels: dict[str, tuple[str, ...]], bounds: tuple[float, ...]
    ) -> None:
        self.bounds = bounds
        self.width = len(bounds) + 2
        super().__init__(name, help, first, labels, merge=SUM, shown=True)


class Catalogue:
    """Gives each metric its place, in the order in which they are declared."""

    def __init__(self) -> None:
        self.metrics: list[Metric] = []
        self.size = 0

    def counter(
        self, name: str, help: str, *, merge: str = SUM, shown: bool = True, **labels: tuple[str, ...]
    ) -> Counter:
        """Something that happens. Its name is given without `_total`."""
        return self._placed(Counter(name, help, self.size, labels, merge=merge, shown=shown))

    def gauge(self, name: str, help: str, *, merge: str = SUM, shown: bool = True, **labels: tuple[str, ...]) -> Gauge:
        """Something that there is more or less of."""
        return self._placed(Gauge(name, help, self.size, labels, merge=merge, shown=shown))

    def histogram(self, name: str, help: str, bounds: tuple[float, ...], **labels: tuple[str, ...]) -> Histogram:
        """Something that takes time, or comes in sizes."""
        return self._placed(Histogram(name, help, self.size, labels, bounds))

    def _placed(self, metric: M) -> M:
        self.metrics.append(metric)
        self.size += metric.size
        return metric
