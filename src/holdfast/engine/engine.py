"""The engine: commands in, outcomes out, one transaction for many callers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from holdfast.core.errors import HoldfastError
from holdfast.core.row import SECOND
from holdfast.engine.alerts import CONFLICTS, DEAD_LETTERS, LAPSES, RECOVERY_FAILURES, Alerts
from holdfast.engine.backlog import MAX_BATCH, MAX_QUEUED, Backlog, Sink, Ticket
from holdfast.engine.batch_metrics import BatchMetrics
from holdfast.engine.change_signal import ChangeSignal
from holdfast.engine.command import Command, Held, Outcome, Replayed
from holdfast.engine.lane import Committed, Lane, Outages
from holdfast.engine.retention import Retention
from holdfast.engine.sweep import Sweep
from holdfast.engine.timer import Timer
from holdfast.engine.waiting.names import Lines
from holdfast.engine.waiting.tasks import Crowd
from holdfast.store.contract import Reader, Store
from holdfast.telemetry import metric_names
from holdfast.telemetry.heartbeats import LoopHeartbeat, LoopHeartbeats
from holdfast.telemetry.registry import Registry
from holdfast.telemetry.traces import Traces

T = TypeVar("T")

STUCK_SECONDS = 30.0
"""A lane that has worked on one batch for so long is stuck."""

log = logging.getLogger("holdfast.engine")


class Engine:
    """Lanes over a store, the lines of those who wait, and the sweep that ends what has run out.

    `serving` is for servers: it keeps the store's heartbeat and gives grace after an outage. An
    engine embedded in somebody's script does neither.
    """

    def __init__(
        self,
        store: Store,
        *,
        serving: bool = False,
        max_batch: int = MAX_BATCH,
        max_queued: int = MAX_QUEUED,
        retention: Retention | None = None,
        alerts: Alerts | None = None,
        board: Registry | None = None,
    ) -> None:
        self.store = store
        self.board = board or Registry()
        self.loop_heartbeats = LoopHeartbeats(self.board)
        self._batch_metrics = BatchMetrics(self.board)
        self._sink = _ThreadSink()
        self._outages = Outages()
        # All lanes take from one backlog: while one waits for its commit, the next batch is on its way.
        self._backlog = Backlog(max_batch, max_queued)
        self._lanes = [
            Lane(
                number,
                store,
                self._backlog,
                self._outages,
                on_commit=self._committed,
                on_return=self._grace,
                board=self.board,
            )
            for number in range(store.lanes)
        ]
        self.alerts = alerts or Alerts()
        self.sweep = Sweep(
            store,
            self.submit,
            self._outages,
            serving=serving,
            retention=retention,
            on_failure=partial(self.alerts.note, RECOVERY_FAILURES),
            loop_heartbeats=self.loop_heartbeats,
        )
        self._attentive: set[str] = set()
        self._attending = threading.Lock()
        self._timer = Timer()
        self.lines = Lines(self._try_again, self._deliver, partial(self._attend, "lines"), self._timer)
        self.crowd = Crowd(self._try_again, self._deliver, partial(self._attend, "crowd"), self._timer)
        self.change_signal = ChangeSignal(partial(self._attend, "bells"))

    def trace(self, traces: Traces | None) -> None:
        """Tell of every batch there, or to nobody any more."""
        for lane in self._lanes:
            lane.traces = traces

    def start(self) -> None:
        """Begin to take commands; after an outage, first give grace to those who could not renew."""
        self._watcher = self.store.watch(self._elsewhere)
        for lane in self._lanes:
            lane.thread.start()
        self.sweep.start()

    def stop(self) -> None:
        """Send the waiters away, finish what is queued, then rest."""
        self.drain()
        self.sweep.stop()
        self._backlog.close()
        for lane in self._lanes:
            lane.thread.join()
        self._watcher.close()
        self._timer.close()

    def drain(self) -> None:
        """Send everybody away who waits: in a line, in the crowd, or at a bell."""
        self.lines.drain()
        self.crowd.drain()
        self.change_signal.drain()

    def submit(self, command: Command[Any], sink: Sink, slot: Any = None, wait_seconds: float = 0.0) -> Ticket:
        """Send a command on its way; its reply goes to `sink`. With patience it may stand in line first."""
        deadline = time.monotonic() + wait_seconds if wait_seconds > 0 else None
        ticket = Ticket(command, sink, slot, deadline)
        if (deadline is None or command.once is not None) and self.lines.stand_for(command.line()):
            ticket.command = command.giving_way()
        # A repeated request looks for its answer first; only a new one stands behind those who wait.
        if ticket.line is None or command.once is not None or not self.lines.queue_behind(ticket):
            self._backlog.put(ticket)
        else:
            self.board.add(metric_names.CONTENDED, command.claims)
        return ticket

    def call(self, command: Command[T], wait_seconds: float = 0.0) -> T | Replayed:
        """Send a command and wait for what comes of it: for plain scripts and threads."""
        future: Future[Any] = Future()
        self.submit(command, self._sink, future, wait_seconds)
        result: T | Replayed = future.result()
        return result

    def check_writable(self) -> None:
        """Raise if the last write failed and another one fails as well."""
        if not self._outages.writable:
            self.store.forget_answers(0)  # a write that changes nothing: it raises if there can be none
            self._outages.writable = True

    def parts(self) -> dict[str, LoopHeartbeat]:
        """Every part that works by itself: when it last did, and whether it is stuck or dead."""
        found = {"lanes": self._lanes_pulse(), **self.loop_heartbeats.report()}
        if not self.sweep.is_alive():
            found["sweep"] = LoopHeartbeat(found["sweep"].seconds_ago if "sweep" in found else None, stuck=True)
        return found

    def _lanes_pulse(self) -> LoopHeartbeat:
        moment = time.monotonic()
        alive = all(lane.thread.is_alive() for lane in self._lanes)
        longest = max((moment - (lane.busy_since or moment) for lane in self._lanes), default=0.0)
        return LoopHeartbeat(longest, stuck=not alive or longest > STUCK_SECONDS)

    def sample(self) -> None:
        """Write down how many callers wait for a name, for work, for a change, and how much waits for a lane."""
        waiting = {"name": self.lines.size(), "work": self.crowd.size(), "change": self.change_signal.size()}
        for what, many in waiting.items():
            self.board.set(metric_names.WAITERS, what, to=many)
        self.board.set(metric_names.BACKLOG, to=self._backlog.size())
        self.board.set(metric_names.LANES, to=len(self._lanes))
        self.alerts.sample(self.board)

    def read(self, look: Callable[[Reader], T]) -> T:
        """Look at the committed state, on the caller's thread."""
        with self.store.read() as reader:
            return look(reader)

    def _try_again(self, ticket: Ticket) -> None:
        try:
            self._backlog.put(ticket)
        except HoldfastError as error:
            self._committed_one(ticket, error)

    def _committed(self, committed: Committed) -> None:
        """A batch is durable: answer it, then tell those who may care."""
        replies = []
        self.alerts.note(CONFLICTS, self._batch_metrics.conflicts(committed))
        lapses, dead_letters = self._batch_metrics.changes(committed)
        self.alerts.note(LAPSES, lapses)
        self.alerts.note(DEAD_LETTERS, dead_letters)
        for ticket, outcome in committed.replies:
            if ticket.queues:
                if not isinstance(outcome, Outcome) or not outcome.waits:
                    self.crowd.settled(ticket, outcome)
                    replies.append((ticket, outcome))
                else:
                    self._found_nothing(ticket, outcome)
            elif ticket.line is None:
                replies.append((ticket, outcome))
            elif isinstance(outcome, Held):
                self._held(ticket, outcome, committed)
            else:
                self.lines.settled(ticket)
                replies.append((ticket, outcome))
        self._deliver(replies)
        if committed.deadline is not None:
            self.sweep.expect(committed.deadline, committed.now)
        if committed.freed:
            self.lines.wake(committed.freed)
        if committed.offered:
            self.crowd.offer(committed.offered)
        self.change_signal.ring(committed.touched)
        if committed.touched:
            self._watcher.notify()

    def _found_nothing(self, ticket: Ticket, outcome: Outcome) -> None:
        try:
            self.crowd.found_nothing(ticket, outcome)
        except HoldfastError as error:
            self._deliver([(ticket, error)])

    def leave(self, ticket: Ticket) -> None:
        """The caller of a patient command went away."""
        (self.crowd if ticket.queues else self.lines).leave(ticket)

    def _held(self, ticket: Ticket, outcome: Held, committed: Committed) -> None:
        """Stand in line, and make sure that somebody looks when the holder's time runs out."""
        newcomer = not ticket.in_line
        try:
            self.lines.held(ticket, outcome)
        except HoldfastError as error:
            self._deliver([(ticket, error)])
            return
        if newcomer and self.lines.length(outcome.lease.key) == 1:
            # What was freed between its answer and its standing in line was told to nobody: it looks once more.
            self.lines.wake([outcome.lease.key])
        if outcome.lease.expires_at is not None:
            self.sweep.expect(outcome.lease.expires_at, committed.now)
        elif outcome.lease.available_at is not None:  # it rests; nobody ends that, it just ends
            self.lines.look_later(outcome.lease.key, (outcome.lease.available_at - committed.now) / SECOND)

    def _committed_one(self, ticket: Ticket, outcome: Any) -> None:
        if ticket.queues:
            self.crowd.settled(ticket, outcome)
        else:
            self.lines.settled(ticket)
        self._deliver([(ticket, outcome)])

    def _deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        """One call a sink, however many replies."""
        by_sink: dict[int, list[tuple[Ticket, Any]]] = {}
        for reply in replies:
            by_sink.setdefault(id(reply[0].sink), []).append(reply)
        for part in by_sink.values():
            try:
                part[0][0].sink.deliver(part)
            except Exception:
                log.exception("%d replies could not be delivered", len(part))

    def _attend(self, who: str, waiting: bool) -> None:  # noqa: FBT001 - see the store's contract
        """Others' commits matter while anybody waits here: in a line, in the crowd, or at a bell."""
        with self._attending:
            (self._attentive.add if waiting else self._attentive.discard)(who)
            self._watcher.set_waiting(bool(self._attentive))

    def _grace(self) -> list[Command[Any]]:
        """What a lane must do first when the store is back after trouble."""
        return [*self.sweep.grace()]

    def _elsewhere(self) -> None:
        """Another process may have changed the store."""
        self.lines.wake_all()
        self.crowd.look()
        self.change_signal.ring_all()
        self.sweep.look()


class _ThreadSink:
    """Replies to callers that block on a future."""

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        for ticket, outcome in replies:
            if isinstance(outcome, BaseException):
                ticket.slot.set_exception(outcome)
            else:
                ticket.slot.set_result(outcome)
