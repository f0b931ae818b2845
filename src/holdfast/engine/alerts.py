"""Alerts: hourly counts of rare events, and one warning per hour when a threshold is passed."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping

from holdfast.telemetry.metric_names import ALERT_KINDS, ALERTS_RECENT, ALERTS_TOTAL
from holdfast.telemetry.registry import Registry

WINDOW_SECONDS = 3600.0

CONFLICTS, LAPSES, DEAD_LETTERS, RECOVERY_FAILURES = ALERT_KINDS
"""Conflicts with another holder; leases that expired; tasks that became dead letters; failures of the sweep."""

log = logging.getLogger("holdfast.alerts")


class Alerts:
    """Counts of rare events since the start and in the last hour, compared with their thresholds."""

    def __init__(self, limits: Mapping[str, int] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits or {}
        """Hourly thresholds; kinds without one are only counted."""
        self._clock = clock
        self._lock = threading.Lock()
        self._total: Counter[str] = Counter()
        self._recent: dict[str, deque[tuple[float, int]]] = {kind: deque() for kind in ALERT_KINDS}
        self._sums: Counter[str] = Counter()
        self._muted_until: dict[str, float] = {}

    def note(self, kind: str, count: int = 1) -> None:
        """Count occurrences of a kind, and warn if its threshold is passed."""
        if not count:
            return
        moment = self._clock()
        with self._lock:
            self._total[kind] += count
            self._add(kind, moment, count)
            found = self._in_window(kind, moment)
            limit = self._limits.get(kind, 0)
            if not limit or found <= limit or moment < self._muted_until.get(kind, 0.0):
                return
            self._muted_until[kind] = moment + WINDOW_SECONDS
        log.warning("%d %s in the last hour, more than %d", found, kind.replace("_", " "), limit)

    def report(self) -> dict[str, dict[str, int | bool]]:
        """For each kind: the total, the count of the last hour, and whether it passes the threshold."""
        moment = self._clock()
        with self._lock:
            recent = {kind: self._in_window(kind, moment) for kind in ALERT_KINDS}
            return {
                kind: {
                    "total": self._total[kind],
                    "last_hour": recent[kind],
                    "alert": self.is_alert(kind, recent[kind]),
                }
                for kind in ALERT_KINDS
            }

    def sample(self, registry: Registry) -> None:
        """Write the counts to the registry, which adds up the counts of all worker processes."""
        for kind, numbers in self.report().items():
            registry.set(ALERTS_RECENT, kind, to=numbers["last_hour"])
            registry.cells[ALERTS_TOTAL.at(kind)] = numbers["total"]

    def is_alert(self, kind: str, recent: float) -> bool:
        """Whether a count of one hour passes the threshold."""
        return 0 < self._limits.get(kind, 0) < recent

    def _add(self, kind: str, moment: float, count: int) -> None:
        recent = self._recent[kind]
        self._sums[kind] += count
        if recent and int(recent[-1][0]) == int(moment):  # one entry per second
            count += recent.pop()[1]
        recent.append((moment, count))

    def _in_window(self, kind: str, moment: float) -> int:
        recent = self._recent[kind]
        while recent and recent[0][0] <= moment - WINDOW_SECONDS:
            self._sums[kind] -= recent.popleft()[1]
        return self._sums[kind]
