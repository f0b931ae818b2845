"""Rules of reservations that no event may break, by the log alone.

Of two reservations whose patterns have a file in common at most one is held while one of them is exclusive, and nobody
is served before somebody who waits for such a file and came earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from holdfast.core.event import Event
from tests.simulation.reservation_activities import files_in_both

if TYPE_CHECKING:
    from tests.simulation.log_checker import LogChecker

Image = dict[str, Any]


class ReservationLogChecker:
    """Checks each event of a reservation against the rows that the log gives so far."""

    def __init__(self, log: LogChecker) -> None:
        self._log = log
        self._fail = log.fail

    def check(self, event: Event, verb: str, before: Image, after: Image) -> None:
        if verb == "waiting":
            self._check_arrival(event, after)
        elif verb == "reserved":
            self._check_granted(event, after, after["paths"], arrived_at=before["arrived_at"] or None)
        elif verb == "left":
            if before["proof"] is not None:
                self._fail(f"P26: {event.subject} left, but it was held")
        elif verb not in {"purged", "forgotten", "removed"}:
            self._check_held(event, verb, before, after)

    def _check_held(self, event: Event, verb: str, before: Image, after: Image) -> None:
        if before["proof"] is None:
            self._fail(f"P4: {event.kind} of {event.subject}, which nobody held")
        elif verb == "expired":
            self._log.check_expiry(event, before)
        elif verb in {"renewed", "released", "reduced", "enlarged", "undelivered"}:
            self._log.check_holder(event, before)
        if verb == "enlarged":
            added = [path for path in after["paths"] if path not in before["paths"]]
            self._check_granted(event, after, added, arrived_at=None)
        if verb == "reduced" and not set(after["paths"]) < set(before["paths"]):
            self._fail(f"P25: {event.subject} was reduced from {before['paths']} to {after['paths']}")

    def _check_granted(self, event: Event, after: Image, paths: list[str], *, arrived_at: int | None) -> None:
        for subject, other, files in self._overlapping(event, after, paths):
            if other["proof"] is not None:
                self._fail(f"P25: {event.subject} got {', '.join(sorted(files))}, which {subject} holds")
            elif arrived_at is None or other["arrived_at"] < arrived_at:
                self._fail(f"P26: {event.subject} overtook {subject}, which waits for {', '.join(sorted(files))}")

    def _check_arrival(self, event: Event, after: Image) -> None:
        for subject, other, _ in self._overlapping(event, after, after["paths"]):
            if other["proof"] is None and other["arrived_at"] >= after["arrived_at"]:
                self._fail(f"P26: {event.subject} came after {subject}, but its place is before it")

    def _overlapping(self, event: Event, after: Image, paths: list[str]) -> Iterator[tuple[str, Image, frozenset[str]]]:
        """The others that are held or wait, have files in common with these paths, and must not share them."""
        for subject, other in self._log.images.items():
            if subject == event.subject or not subject.startswith("reservation:") or other["ended_at"] is not None:
                continue
            if other["space"] == after["space"] and "exclusive" in (after["mode"], other["mode"]):
                files = files_in_both(paths, other["paths"])
                if files:
                    yield subject, other, files


def who_waits_for_nothing(images: dict[str, Image], waiting: set[str]) -> Iterator[str]:
    """Those of the waiting reservations in whose way nothing is: a wake-up was lost."""
    opened = {subject: each for subject, each in images.items()
              if subject.startswith("reservation:") and each["ended_at"] is None}  # fmt: skip
    for subject in sorted(waiting & opened.keys()):
        mine = opened[subject]
        if mine["proof"] is None and not any(
            other["space"] == mine["space"]
            and "exclusive" in (mine["mode"], other["mode"])
            and (other["proof"] is not None or other["arrived_at"] < mine["arrived_at"])
            and files_in_both(mine["paths"], other["paths"])
            for name, other in opened.items()
            if name != subject
        ):
            yield subject
