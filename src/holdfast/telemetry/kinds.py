"""Metric types, and the cells of the registry that each metric uses. Every series is known before anything runs.

All label values are declared beforehand: so a series is an offset in an array, writing is cheap, processes that share
memory agree on all offsets, and no caller can create a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TypeVar

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
SUM, LEAST, MOST = "sum", "least", "most"
"""How the values of several processes are combined. For the least, 0 means that there is no value yet."""

Labels = dict[str, str]
M = TypeVar("M", bound="Metric")


class Metric:
    """A metric: one series for each combination of label values."""

    kind = COUNTER
    width = 1
    """Cells of one series."""

    def __init__(
        self, name: str, help: str, first: int, labels: dict[str, tuple[str, ...]], *, merge: str, exported: bool
    ) -> None:
        self.name = name
        self.help = help
        self.first = first
        self.labels = {label.rstrip("_"): values for label, values in labels.items()}
        """Labels that are Python keywords are declared with a trailing underscore."""
        self.merge = merge
        self.exported = exported
        """Whether `/metrics` exports it; some metrics are only for other pages."""
        self._offsets = {values: first + self.width * index for index, values in enumerate(product(*labels.values()))}

    def at(self, *values: str) -> int:
        """The offset of one series; label values in the order of their declaration."""
        return self._offsets[values]

    def series(self) -> Iterator[tuple[Labels, int]]:
        """Every series and its offset."""
        for values, offset in self._offsets.items():
            yield dict(zip(self.labels, values, strict=True)), offset

    @property
    def size(self) -> int:
        """Cells of all series."""
        return self.width * len(self._offsets)


class Counter(Metric):
    """A count that only grows. It is kept when its process ends."""


class Gauge(Metric):
    """A current value. It is dropped when its process ends."""

    kind = GAUGE


class Histogram(Metric):
    """A distribution: one cell per bucket, one for values above the last bucket, one for the sum."""

    kind = HISTOGRAM

    def __init__(
        self, name: str, help: str, first: int, labels: dict[str, tuple[str, ...]], bounds: tuple[float, ...]
    ) -> None:
        self.bounds = bounds
        self.width = len(bounds) + 2
        super().__init__(name, help, first, labels, merge=SUM, exported=True)


class MetricSet:
    """Declares metrics and assigns their offsets in order of declaration."""

    def __init__(self) -> None:
        self.metrics: list[Metric] = []
        self.size = 0

    def counter(
        self, name: str, help: str, *, merge: str = SUM, exported: bool = True, **labels: tuple[str, ...]
    ) -> Counter:
        """Declare a counter; its name is given without `_total`."""
        return self._add(Counter(name, help, self.size, labels, merge=merge, exported=exported))

    def gauge(
        self, name: str, help: str, *, merge: str = SUM, exported: bool = True, **labels: tuple[str, ...]
    ) -> Gauge:
        """Declare a gauge."""
        return self._add(Gauge(name, help, self.size, labels, merge=merge, exported=exported))

    def histogram(self, name: str, help: str, bounds: tuple[float, ...], **labels: tuple[str, ...]) -> Histogram:
        """Declare a histogram with the upper bounds of its buckets."""
        return self._add(Histogram(name, help, self.size, labels, bounds))

    def _add(self, metric: M) -> M:
        self.metrics.append(metric)
        self.size += metric.size
        return metric
