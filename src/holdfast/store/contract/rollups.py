"""The interface of roll-ups, which are stored beside the log with a cursor for each account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from holdfast.core.event import Event
from holdfast.core.rollups.rollup import Rollup
from holdfast.core.row import Instant

IntervalKey = tuple[Instant, Instant]
"""(length, start) of an interval."""


MAX_DELAYED = 100_000
"""Tasks that cannot be claimed yet are counted up to this number, so that the query stays cheap."""


class UncountedLog(msgspec.Struct, frozen=True):
    """An account whose log has events that are not counted."""

    account: str
    cursor: int | None
    """The last event that is counted; None if none is."""
    floor: int
    """The last event removed by retention."""
    last: int


class CountedEvents(msgspec.Struct, frozen=True):
    """A part of an account's log that was counted."""

    account: str
    cursor: int | None
    """Where the cursor was: if it has moved since, another server has counted this part."""
    seq: int
    counted_to: Instant
    """Everything that happened before this time is counted."""
    rollups: Mapping[IntervalKey, Rollup]
    """What is added to the roll-up of each interval."""


class CountedUntil(msgspec.Struct, frozen=True):
    """How far an account's log is counted."""

    seq: int
    counted_to: Instant


class Rollups(Protocol):
    """The roll-ups of all accounts."""

    def uncounted(self, not_since: Instant, limit: int) -> list[UncountedLog]:
        """At most `limit` accounts with uncounted events of which nothing was saved after `not_since`."""

    def add(self, counted: Sequence[CountedEvents], keep_since: Mapping[Instant, Instant]) -> list[str]:
        """Move cursors and merge what was counted into the roll-ups, in one transaction; returns accounts that moved.

        Of these accounts, roll-ups of a length that begin before `keep_since[length]` are removed.
        """

    def tasks_before(self, account: str, versions: Mapping[str, int]) -> dict[str, tuple[str | None, Event | None]]:
        """Of each task id its type, and its last event below this version that is not a renewal."""

    def delayed_tasks(self, account: str) -> dict[str, int]:
        """How many pending tasks of each type are not in their queue, counted up to MAX_DELAYED of all types."""

    def counted_until(self, account: str) -> CountedUntil | None:
        """How far an account's log is counted; None if it never was."""

    def page(self, account: str, length: Instant, since: Instant) -> list[tuple[Instant, Rollup]]:
        """(start, roll-up) of the intervals since then and of the last one before, oldest first."""
