"""Virtual time: inside a simulation the engine's clocks, timers and waits are those of the simulated world."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import holdfast.clock
from holdfast.core.row import SECOND, Instant
from holdfast.engine import cleanup, engine, lane, server_heartbeat, sweep
from holdfast.engine.batches import locked_rows, transaction
from holdfast.engine.timer import Alarm, Timer
from holdfast.engine.waiting import kept_places, names, reservations
from holdfast.store import needs
from tests.support import START

KEEP_ANSWERS = 120 * SECOND
"""Instead of 7 days: a run lasts minutes."""

_USERS_OF_TIME = (
    holdfast.clock, engine, lane, locked_rows, transaction, sweep, server_heartbeat, names, kept_places, reservations,
)  # fmt: skip


class VirtualTime:
    """Replaces the module `time` in the engine. Only the simulation moves it; all its servers share it.

    Engines that other tests have left running in this process have threads of their own: these get the real time.
    """

    def __init__(self) -> None:
        self.now: Instant = START
        self.thread = threading.get_ident()

    def monotonic(self) -> float:
        return (self.now - START) / SECOND if threading.get_ident() == self.thread else time.monotonic()

    def perf_counter(self) -> float:
        return self.monotonic()

    def time_ns(self) -> int:
        return self.now * 1000 if threading.get_ident() == self.thread else time.time_ns()

    def clock_gettime(self, clock: int) -> float:
        return self.monotonic() if threading.get_ident() == self.thread else time.clock_gettime(clock)

    def clock_gettime_ns(self, clock: int) -> int:
        return (self.now - START) * 1000 if threading.get_ident() == self.thread else time.clock_gettime_ns(clock)

    def sleep(self, seconds: float) -> None:
        """In a simulation nothing: the lane sleeps a millisecond before it tries a claim again."""
        if threading.get_ident() != self.thread:
            time.sleep(seconds)


class VirtualTimer(Timer):
    """A timer without a thread: the simulation runs what is due."""

    def __init__(self) -> None:
        self._heap = []
        self._order = itertools.count()

    def at(self, moment: float, action: Callable[[], None]) -> Alarm:
        alarm = Alarm(action)
        heapq.heappush(self._heap, (moment, next(self._order), alarm))
        return alarm

    def next_moment(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def run_due(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            action = heapq.heappop(self._heap)[2].action
            if action is not None:
                action()


class Runtime:
    """What the engine uses instead of clocks, threads and the log, for one simulated world after another."""

    def __init__(self) -> None:
        self.time = VirtualTime()
        self.report: Callable[[str], None] = lambda problem: None
        """Receives what the engine logs as an error: it catches exceptions that would otherwise go unnoticed."""
        self.wait_for: Callable[[Callable[[], bool]], None] = lambda is_done: None
        """Lets others act until a result is there; the thread of the sweep would block meanwhile."""


class _Future:
    """A result that the sweep waits for while others act."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._results: list[Any] = []

    def set_result(self, result: Any) -> None:
        self._results.append(result)

    def result(self) -> Any:
        self._runtime.wait_for(lambda: bool(self._results))
        return self._results[0]


class _ErrorReports(logging.Handler):
    def __init__(self, runtime: Runtime) -> None:
        super().__init__(logging.ERROR)
        self._runtime = runtime

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread != self._runtime.time.thread:
            return
        error = record.exc_info[1] if record.exc_info else None
        self._runtime.report(f"the engine logged an error: {record.getMessage()}: {error!r}")


@contextmanager
def simulated_runtime() -> Iterator[Runtime]:
    """Run the engine on virtual time, without threads, until the end of the block."""
    runtime, log, real_future = Runtime(), logging.getLogger("holdfast"), sweep.Future

    def make_future() -> Any:
        return _Future(runtime) if threading.get_ident() == runtime.time.thread else real_future()

    before = [(module, "time", module.time) for module in _USERS_OF_TIME]
    before += [(sweep, "Future", sweep.Future), (cleanup, "KEEP_ANSWERS", cleanup.KEEP_ANSWERS)]
    before += [(needs, "MAX_DEPENDENTS", needs.MAX_DEPENDENTS)]
    before += [(log, "propagate", log.propagate), (log, "handlers", log.handlers)]
    level = log.level
    try:
        for module in _USERS_OF_TIME:
            module.time = runtime.time
        sweep.Future, cleanup.KEEP_ANSWERS = make_future, KEEP_ANSWERS
        needs.MAX_DEPENDENTS = 1  # so that some are left for the sweep
        log.propagate, log.handlers = False, [_ErrorReports(runtime)]
        log.setLevel(logging.ERROR)
        yield runtime
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
        log.setLevel(level)
