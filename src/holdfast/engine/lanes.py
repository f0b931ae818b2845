"""The lanes of an engine, and which thread runs the next batch: a lane's own, or the one that submitted it."""

from __future__ import annotations

import time
from functools import partial
from typing import Protocol

from holdfast.engine.backlog import Backlog
from holdfast.engine.lane import Lane
from holdfast.engine.ticket import RunSoon, Ticket
from holdfast.telemetry import metric_names
from holdfast.telemetry.heartbeats import LoopHeartbeat
from holdfast.telemetry.registry import Registry
from holdfast.telemetry.traces import Traces

SMALL_WEIGHT = 20
"""Commands that touch more rows than this run on a lane's thread, while the caller's thread serves others."""
STUCK_SECONDS = 10.0
"""A lane that has worked on one batch for longer than this is reported as stuck."""


class CommandRunner(Protocol):
    """What runs the commands of an engine: lanes of this process, or of another one."""

    def start(self) -> None:
        """Start to run commands."""

    def stop(self) -> None:
        """Finish what is queued, then stop."""

    def put(self, ticket: Ticket, run_soon: RunSoon | None = None) -> None:
        """Queue a ticket and have it run. With `run_soon` that may be on the caller's thread."""

    def serve(self, run_soon: RunSoon) -> None:
        """Let the thread of an event loop run batches; `run_soon` calls a function there from any thread."""

    def trace(self, traces: Traces | None) -> None:
        """Record a trace of every batch in `traces`; None turns tracing off."""

    def seconds_on_callers(self) -> float:
        """How long batches have run on the threads of callers so far."""

    def heartbeat(self) -> LoopHeartbeat:
        """How long the longest running batch has taken, and whether it is stuck."""

    def sample(self, registry: Registry) -> None:
        """Set the gauges."""


class Lanes:
    """All lanes of a store. They take from one backlog: while one waits for its commit, another runs the next batch."""

    def __init__(self, backlog: Backlog, lanes: list[Lane], *, is_local: bool) -> None:
        self._backlog = backlog
        self.all = lanes
        self._is_local = is_local
        """Whether callers may run batches: commits wait for nothing but a disk of this machine."""
        self._is_scheduled = False
        """Whether a caller's thread is about to run what is queued."""

    def start(self) -> None:
        """Start the lanes' threads."""
        for lane in self.all:
            lane.thread.start()

    def stop(self) -> None:
        """Finish what is queued, then stop the threads."""
        self._backlog.close()
        for lane in self.all:
            lane.thread.join()

    def put(self, ticket: Ticket, run_soon: RunSoon | None = None) -> None:
        """Queue a ticket and have it run. With `run_soon` that may be on the caller's thread."""
        self._backlog.put(ticket)
        if run_soon is None or not self._is_local or ticket.command.weight() > SMALL_WEIGHT:
            self._backlog.wake()
        elif not self._is_scheduled:
            self._is_scheduled = True
            run_soon(partial(self._run_queued, run_soon))

    def serve(self, run_soon: RunSoon) -> None:
        """Let the thread of an event loop run batches; `run_soon` calls a function there from any thread."""

        def ask() -> bool:
            try:
                run_soon(partial(self._run_queued, run_soon))
            except RuntimeError:  # the event loop has ended
                return False
            return True

        if self._is_local:
            self.all[0].ask_caller = ask

    def _run_queued(self, run_soon: RunSoon) -> None:
        self._is_scheduled = False  # before it looks: whoever puts a ticket after that look schedules another run
        if not self.all[0].run_here(run_soon):
            self._backlog.wake()

    def trace(self, traces: Traces | None) -> None:
        """Record a trace of every batch in `traces`; None turns tracing off."""
        for lane in self.all:
            lane.transaction.traces = traces

    def seconds_on_callers(self) -> float:
        """How long batches have run on the threads of callers so far."""
        return self.all[0].seconds_here

    def heartbeat(self) -> LoopHeartbeat:
        """How long the longest running batch has taken, and whether a lane is stuck or dead."""
        now = time.monotonic()
        alive = all(lane.thread.is_alive() for lane in self.all)
        longest = max((now - (lane.busy_since or now) for lane in self.all), default=0.0)
        return LoopHeartbeat(longest, stuck=not alive or longest > STUCK_SECONDS)

    def sample(self, registry: Registry) -> None:
        """Set the gauges: the size of the backlog, and the number of lanes."""
        registry.set(metric_names.BACKLOG, to=self._backlog.size())
        registry.set(metric_names.LANES, to=len(self.all))
