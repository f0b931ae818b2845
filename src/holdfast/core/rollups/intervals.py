"""Which intervals roll-ups have, how long they are kept, and which of them a chart of some range shows."""

from __future__ import annotations

import msgspec

from holdfast.core.row import SECOND, Instant

MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 24 * 3600 * SECOND


class Resolution(msgspec.Struct, frozen=True):
    """Intervals of one length."""

    length: Instant
    keep: Instant
    """How long they are kept."""

    def start_of(self, at: Instant) -> Instant:
        """When the interval begins that a time is in."""
        return at // self.length * self.length

    def kept_since(self, now: Instant) -> Instant:
        """The start of the oldest interval that is kept."""
        return max(self.start_of(now) - self.keep, 0)


RESOLUTIONS = (
    Resolution(MINUTE, 4 * HOUR),
    Resolution(10 * MINUTE, 26 * HOUR),
    Resolution(2 * HOUR, 31 * DAY),
)


class ChartRange(msgspec.Struct, frozen=True):
    """The time that a chart shows."""

    name: str
    title: str
    length: Instant
    resolution: Resolution
    merged: int = 1
    """How many intervals are one point of the chart."""

    @property
    def step(self) -> Instant:
        """The time between two points."""
        return self.resolution.length * self.merged

    def starts(self, until: Instant) -> range:
        """The start of each point, up to the one that `until` is in."""
        last = until // self.step * self.step
        return range(max(last - self.length + self.step, 0), last + 1, self.step)


RANGES = (
    ChartRange("30m", "30 minutes", 30 * MINUTE, RESOLUTIONS[0]),
    ChartRange("3h", "3 hours", 3 * HOUR, RESOLUTIONS[0], 2),
    ChartRange("1d", "24 hours", DAY, RESOLUTIONS[1]),
    ChartRange("7d", "7 days", 7 * DAY, RESOLUTIONS[2]),
    ChartRange("30d", "30 days", 30 * DAY, RESOLUTIONS[2], 3),
)
