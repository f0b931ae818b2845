"""Histograms of durations with fixed logarithmic buckets: two are merged by adding, and percentiles are read off."""

from __future__ import annotations

import math
from bisect import bisect_right

from holdfast.core.row import Instant

PER_DECADE = 10
"""Buckets between a duration and its tenfold: a percentile is wrong by at most 26 %."""
SHORTEST: Instant = 1_000
LONGEST = 96
"""Buckets above the first one; they end beyond 30 days."""
BOUNDS: tuple[Instant, ...] = tuple(round(SHORTEST * 10 ** (step / PER_DECADE)) for step in range(LONGEST))
"""Where each bucket but the first begins. The first is everything below a millisecond, the last has no end."""

Histogram = dict[int, int]
"""Number of durations by bucket."""


def bucket_of(duration: Instant) -> int:
    """The bucket of a duration."""
    return bisect_right(BOUNDS, duration)


def observe(histogram: Histogram, duration: Instant) -> None:
    """Count one duration."""
    bucket = bucket_of(duration)
    histogram[bucket] = histogram.get(bucket, 0) + 1


def merge_histograms(one: Histogram, other: Histogram) -> Histogram:
    """The histogram of the durations of both."""
    merged = dict(one)
    for bucket, count in other.items():
        merged[bucket] = merged.get(bucket, 0) + count
    return merged


def percentile(histogram: Histogram, fraction: float) -> Instant | None:
    """The duration that this fraction of all does not exceed, interpolated inside its bucket; None if there is none."""
    rank = max(math.ceil(sum(histogram.values()) * fraction), 1)
    for bucket in sorted(histogram):
        count = histogram[bucket]
        if rank <= count:
            low, high = bucket_range(bucket)
            return low + round((high - low) * (rank - 0.5) / count)
        rank -= count
    return None


def bucket_range(bucket: int) -> tuple[Instant, Instant]:
    """Where a bucket begins and ends; the last one is taken as its beginning alone."""
    low = BOUNDS[min(bucket, LONGEST) - 1] if bucket > 0 else 0
    return low, BOUNDS[bucket] if bucket < LONGEST else low
