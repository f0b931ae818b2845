"""The engine: runs the commands of many callers in one transaction and delivers their outcomes."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from holdfast.core.errors import HoldfastError, ServerOutdated
from holdfast.core.principal import Principal
from holdfast.core.row import Instant
from holdfast.engine.alerts import CONFLICTS, DEAD_LETTERS, LAPSES, RECOVERY_FAILURES, Alerts
from holdfast.engine.backlog import MAX_BATCH, MAX_QUEUED, Backlog
from holdfast.engine.batches.metrics import BatchMetrics
from holdfast.engine.batches.transaction import Committed
from holdfast.engine.change_signal import ChangeSignal
from holdfast.engine.command import Command, Replayed
from holdfast.engine.lane import Lane
from holdfast.engine.lanes import CommandRunner, Lanes
from holdfast.engine.outages import Outages
from holdfast.engine.retention import Retention
from holdfast.engine.rollups.thread import RollupThread
from holdfast.engine.sweep import Sweep
from holdfast.engine.ticket import CallerKey, FutureSink, RunSoon, Sink, Ticket, deliver, run_now
from holdfast.engine.timer import Timer
from holdfast.engine.waiting.all_waiters import AllWaiters
from holdfast.store.contract import Reader, Store
from holdfast.telemetry import metric_names
from holdfast.telemetry.heartbeats import LoopHeartbeat, LoopHeartbeats
from holdfast.telemetry.registry import Registry

T = TypeVar("T")

log = logging.getLogger("holdfast.engine")


class Engine:
    """The lanes of a store, the waiting callers, and the sweep that ends expired rows.

    `serving` is for servers: it keeps the store's heartbeat and gives grace after an outage. An engine embedded in a
    program keeps no heartbeat; it gives grace once if it finds that the servers of its store have died. `lanes` are
    given if commands run in another process.
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
        registry: Registry | None = None,
        timer: Timer | None = None,
        lanes: CommandRunner | None = None,
    ) -> None:
        self.store = store
        self.registry = registry or Registry()
        store.damaged_rows.on_found = partial(self.registry.add, metric_names.DAMAGED_ROWS)
        self.loop_heartbeats = LoopHeartbeats(self.registry)
        self._batch_metrics = BatchMetrics(self.registry)
        self._sink = FutureSink()
        self._outages = Outages(serving=serving)
        self._backlog = Backlog(max_batch, max_queued)
        self.lanes = lanes or self._make_lanes()
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
        self.rollups = RollupThread(store) if serving else None
        """Only servers count the log for charts: a program ends too soon."""
        self._waiting_kinds: set[str] = set()
        """The kinds of waiters that have a waiting caller now: for them commits of other processes matter."""
        self._waiting_lock = threading.Lock()
        self._timer = timer or Timer()
        self._waiters = AllWaiters(self._resubmit, self._set_waiting, self._timer, self._make_ticket)
        self.name_waiters = self._waiters.names
        self.task_waiters = self._waiters.tasks
        self.reservation_waiters = self._waiters.reservations
        self.change_signal = ChangeSignal(partial(self._set_waiting, "changes"))

    def _make_lanes(self) -> Lanes:
        lanes = [
            Lane(
                number,
                self.store,
                self._backlog,
                self._outages,
                on_commit=self._on_commit,
                on_return=lambda: [*self.sweep.grace_commands()],
                on_recovered=self._close_outage,
                find_claims=self._find_claims,
                registry=self.registry,
            )
            for number in range(self.store.lanes)
        ]
        return Lanes(self._backlog, lanes, is_local=self.store.is_local)

    def start(self) -> None:
        """Start the lanes and the sweep; after an outage, holders that could not renew get grace first."""
        self.watch()
        self.lanes.start()
        self.sweep.start()
        if self.rollups is not None:
            self.rollups.start()

    def watch(self) -> None:
        """Start watching for commits of other processes."""
        self._watcher = self.store.watch(self._on_foreign_commit)

    def stop(self) -> None:
        """Answer the waiters, finish what is queued, then stop every thread."""
        self.drain()
        if self.rollups is not None:
            self.rollups.stop()
        self.sweep.stop()
        self.lanes.stop()
        self._watcher.close()
        self._timer.close()

    def drain(self) -> None:
        """Answer every waiting caller that the server is shutting down."""
        self._waiters.drain()
        self.change_signal.drain()

    def submit(
        self,
        command: Command[Any],
        sink: Sink,
        slot: Any = None,
        wait_seconds: float = 0.0,
        key: CallerKey | None = None,
        *,
        run_soon: RunSoon | None = None,
    ) -> Ticket:
        """Queue a command; its reply goes to `sink`. With `wait_seconds` a claim may wait for a name or a task.

        A claim that waited is refused if the caller's `key` has stopped working. `run_soon` lets the batch run on the
        caller's thread, if that is possible without waiting.
        """
        self._outages.check_outdated()
        deadline = time.monotonic() + wait_seconds if wait_seconds > 0 else None
        ticket = Ticket(command, sink, slot, deadline, key)
        if (deadline is None or command.once is not None) and (waited := self.name_waiters.waited_for(command)):
            ticket.command = command.yield_to_waiters(waited)
        # A request with an Idempotency-Key first runs, to find its stored answer; any other joins the queue at once.
        if not ticket.wait_keys or command.once is not None or not self.name_waiters.join_queue(ticket):
            self.lanes.put(ticket, run_soon)
        else:
            self.registry.add(metric_names.CONTENDED, command.claims)
        return ticket

    def call(self, command: Command[T], wait_seconds: float = 0.0) -> T | Replayed:
        """Run a command and block until its outcome: for scripts and threads."""
        future: Future[Any] = Future()
        self.submit(command, self._sink, future, wait_seconds, run_soon=run_now)
        result: T | Replayed = future.result()
        return result

    def give_back(self, command: Command[T], outcome: T) -> None:
        """Give back what a command was granted for a caller that has gone."""
        back = command.give_back(outcome)
        if back is not None:
            with suppress(HoldfastError):  # an engine that stops leaves it to the expiry of the lease
                self.submit(back, self._sink, Future())

    def check_writable(self) -> None:
        """Raise if the last write failed and another one fails as well."""
        if not self._outages.writable:
            self.store.forget_answers(0)  # a write that changes nothing: it raises if the store cannot write
            self._outages.writable = True

    def loop_report(self) -> dict[str, LoopHeartbeat]:
        """For each background loop: when it last ran, and whether it is stuck or dead."""
        found = {"lanes": self.lanes.heartbeat(), **self.loop_heartbeats.report()}
        if not self.sweep.is_alive():
            found["sweep"] = LoopHeartbeat(found["sweep"].seconds_ago if "sweep" in found else None, stuck=True)
        return found

    def sample(self) -> None:
        """Set the gauges: callers that wait for a name, for work or for a change, the backlog and the lanes."""
        waiting = {
            "name": self.name_waiters.size(),
            "work": self.task_waiters.size(),
            "reservation": self.reservation_waiters.size(),
            "change": self.change_signal.size(),
        }
        for label, count in waiting.items():
            self.registry.set(metric_names.WAITERS, label, to=count)
        self.lanes.sample(self.registry)
        self.alerts.sample(self.registry)

    def read(self, query: Callable[[Reader], T]) -> T:
        """Run a query over the committed state, on the caller's thread."""
        self._outages.check_outdated()
        with self.store.read() as reader:
            return query(reader)

    @property
    def outdated(self) -> ServerOutdated | None:
        """Why this server must not use the store any more, because a newer one has upgraded it; None if it may."""
        return self._outages.outdated

    def _make_ticket(self, command: Command[Any]) -> Ticket:
        """A ticket for a command whose outcome nobody needs."""
        return Ticket(command, self._sink, Future())

    def _resubmit(self, ticket: Ticket) -> None:
        try:
            self.lanes.put(ticket)
        except HoldfastError as error:
            self._waiters.answer(ticket, error)

    def _find_claims(self, batch: list[Ticket]) -> list[Ticket]:
        """The claims of callers that wait for tasks which this batch creates."""
        if self.task_waiters.is_empty:
            return []
        new_tasks = Counter(queue for ticket in batch for queue in ticket.command.new_tasks())
        if not new_tasks:
            return []
        once_keys = {key for ticket in batch for key in ticket.command.once_keys()}
        return self.task_waiters.join(new_tasks, MAX_BATCH - len(batch), once_keys)

    def _on_commit(self, committed: Committed) -> Callable[[], None]:
        """Answer a committed batch; what must follow is returned."""
        self._count(self._count_replies, committed)  # before tickets begin to wait: their first conflict counts
        replies = []
        for ticket, outcome in committed.replies:
            replies += self._waiters.handle(ticket, outcome, committed, self.sweep.expect)
        deliver(replies)
        return partial(self._react, committed)

    def _react(self, committed: Committed) -> None:
        """Wake the waiters and the sweep that the changes of a batch concern, and count them."""
        effects = committed.effects()
        if effects.deadline is not None:
            self.sweep.expect(effects.deadline, committed.now)
        self._waiters.wake(effects)
        self.change_signal.notify(effects.touched)
        if effects.touched:
            self._watcher.notify()
        self._count(self._count_changes, committed)

    def _count(self, count: Callable[[Committed], None], committed: Committed) -> None:
        """Count a part of a batch; it is answered also if that fails."""
        try:
            count(committed)
        except Exception:
            log.exception("a batch could not be counted")

    def _count_replies(self, committed: Committed) -> None:
        self.alerts.note(CONFLICTS, self._batch_metrics.conflicts(committed))

    def _count_changes(self, committed: Committed) -> None:
        lapses, dead_letters = self._batch_metrics.changes(committed)
        self.alerts.note(LAPSES, lapses)
        self.alerts.note(DEAD_LETTERS, dead_letters)

    def end_waits(self, principal: Principal, now: Instant) -> None:
        """End the waits of a principal whose key changed, unless they were begun with a key that still works."""
        self._waiters.end_waits(principal, now)

    def leave(self, ticket: Ticket) -> None:
        """Remove a ticket whose caller disconnected."""
        self._waiters.leave(ticket)

    def _set_waiting(self, kind: str, *, waiting: bool) -> None:
        """Record whether callers of this kind wait; other processes' commits are watched while any caller waits."""
        with self._waiting_lock:
            (self._waiting_kinds.add if waiting else self._waiting_kinds.discard)(kind)
            self._watcher.set_waiting(waiting=bool(self._waiting_kinds))

    def _close_outage(self) -> None:
        self.sweep.close_outage()

    def _on_foreign_commit(self) -> None:
        """Wake all waiters and the sweep: another process may have changed the store."""
        self._waiters.wake_all()
        self.change_signal.notify_all()
        self.sweep.wake()
