"""Counts of what should be rare, and one warning a window when there is too much of it."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping

from holdfast.telemetry.metric_names import RARE_RECENT, RARE_TOTAL
from holdfast.telemetry.registry import Registry

WINDOW_SECONDS = 3600.0

CONFLICTS, LAPSES, DEAD_LETTERS, RECOVERY_FAILURES = "conflicts", "lapses", "dead_letters", "recovery_failures"
KINDS = (CONFLICTS, LAPSES, DEAD_LETTERS, RECOVERY_FAILURES)
"""Claims and writes that met another holder; holders not heard of in time; tasks given up; recoveries that failed."""

log = logging.getLogger("holdfast.alerts")


class Alerts:
    """What happened since the start and in the last window, and which limits are passed."""

    def __init__(self, limits: Mapping[str, int] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits or {}
        """More than so many in a window is worth a warning; kinds without a limit are only counted."""
        self._clock = clock
        self._lock = threading.Lock()
        self._total: Counter[str] = Counter()
        self._recent: dict[str, deque[tuple[float, int]]] = {kind: deque() for kind in KINDS}
        self._sums: Counter[str] = Counter()
        self._quiet_until: dict[str, float] = {}

    def note(self, kind: str, count: int = 1) -> None:
        """So many more of a kind."""
        if not count:
            return
        moment = self._clock()
        with self._lock:
            self._total[kind] += count
            self._add(kind, moment, count)
            found = self._in_window(kind, moment)
            limit = self._limits.get(kind, 0)
            if not limit or found <= limit or moment < self._quiet_until.get(kind, 0.0):
                return
            self._quiet_until[kind] = moment + WINDOW_SECONDS
        log.warning("%d %s in the last hour, more than %d", found, kind.replace("_", " "), limit)

    def report(self) -> dict[str, dict[str, int | bool]]:
        """Each kind: how many since the start, how many in the last window, and whether that is too many."""
        moment = self._clock()
        with self._lock:
            recent = {kind: self._in_window(kind, moment) for kind in KINDS}
            return {
                kind: {
                    "total": self._total[kind],
                    "last_hour": recent[kind],
                    "alert": self.judge(kind, recent[kind]),
                }
                for kind in KINDS
            }

    def sample(self, board: Registry) -> None:
        """Write down what only this process knows, for whoever speaks for several."""
        for kind, numbers in self.report().items():
            board.set(RARE_RECENT, kind, to=numbers["last_hour"])
            board.cells[RARE_TOTAL.at(kind)] = numbers["total"]

    def judge(self, kind: str, recent: float) -> bool:
        """Whether that is too many in a window."""
        return 0 < self._limits.get(kind, 0) < recent

    def _add(self, kind: str, moment: float, count: int) -> None:
        recent = self._recent[kind]
        self._sums[kind] += count
        if recent and int(recent[-1][0]) == int(moment):  # one entry a second, however much happens in it
            count += recent.pop()[1]
        recent.append((moment, count))

    def _in_window(self, kind: str, moment: float) -> int:
        recent = self._recent[kind]
        while recent and recent[0][0] <= moment - WINDOW_SECONDS:
            self._sums[kind] -= recent.popleft()[1]
        return self._sums[kind]
