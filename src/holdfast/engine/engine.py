"""The engine: commands in, outcomes out, one transaction for many callers."""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from holdfast.core.errors import HoldfastError
from holdfast.core.row import SECOND
from holdfast.engine.backlog import MAX_BATCH, MAX_QUEUED, Backlog, Sink, Ticket
from holdfast.engine.command import Command, Held, Replayed
from holdfast.engine.lane import Committed, Lane, Outages
from holdfast.engine.sweep import Sweep
from holdfast.engine.waiting import Lines
from holdfast.store.contract import Reader, Store

T = TypeVar("T")

log = logging.getLogger("holdfast.engine")


class Engine:
    """Lanes over a store, the lines of those who wait, and the sweep that ends what has run out.

    `serving` is for servers: it keeps the store's heartbeat and gives grace after an outage. An
    engine embedded in somebody's script does neither.
    """

    def __init__(
        self, store: Store, *, serving: bool = False, max_batch: int = MAX_BATCH, max_queued: int = MAX_QUEUED
    ) -> None:
        self.store = store
        self._sink = _ThreadSink()
        self._outages = Outages()
        self._lanes = [
            Lane(
                number,
                store,
                Backlog(max_batch, max_queued),
                self._outages,
                on_commit=self._committed,
                on_return=self._grace,
            )
            for number in range(store.lanes)
        ]
        self._sweep = Sweep(store, self.submit, self._outages, serving=serving)
        self.lines = Lines(self._try_again, self._deliver, self._attend)

    def start(self) -> None:
        """Begin to take commands; after an outage, first give grace to those who could not renew."""
        self._watcher = self.store.watch(self._elsewhere)
        for lane in self._lanes:
            lane.thread.start()
        self._sweep.start()

    def stop(self) -> None:
        """Send the waiters away, finish what is queued, then rest."""
        self.lines.drain()
        self._sweep.stop()
        for lane in self._lanes:
            lane.backlog.close()
        for lane in self._lanes:
            lane.thread.join()
        self._watcher.close()
        self.lines.close()

    def submit(self, command: Command[Any], sink: Sink, slot: Any = None, wait_seconds: float = 0.0) -> Ticket:
        """Send a command on its way; its reply goes to `sink`. With patience it may stand in line first."""
        deadline = time.monotonic() + wait_seconds if wait_seconds > 0 else None
        ticket = Ticket(command, sink, slot, deadline)
        if (deadline is None or command.once is not None) and self.lines.stand_for(command.line()):
            ticket.command = command.giving_way()
        # A repeated request looks for its answer first; only a new one stands behind those who wait.
        if ticket.line is None or command.once is not None or not self.lines.queue_behind(ticket):
            self._lane_of(command).backlog.put(ticket)
        return ticket

    def call(self, command: Command[T], wait_seconds: float = 0.0) -> T | Replayed:
        """Send a command and wait for what comes of it: for plain scripts and threads."""
        future: Future[Any] = Future()
        self.submit(command, self._sink, future, wait_seconds)
        result: T | Replayed = future.result()
        return result

    def is_ready(self) -> bool:
        """Whether it can do its work: every thread alive, and the last write went well or none has failed since."""
        alive = all(lane.thread.is_alive() for lane in self._lanes) and self._sweep.is_alive()
        if alive and not self._outages.writable:
            self.store.forget_answers(before=0)  # a write that changes nothing: it raises if there can be none
            self._outages.writable = True
        return alive

    def read(self, look: Callable[[Reader], T]) -> T:
        """Look at the committed state, on the caller's thread."""
        with self.store.read() as reader:
            return look(reader)

    def _lane_of(self, command: Command[Any]) -> Lane:
        # By account alone: two lanes of one process would otherwise queue on one account's event counter.
        return self._lanes[zlib.crc32(command.account.encode()) % len(self._lanes)]

    def _try_again(self, ticket: Ticket) -> None:
        try:
            self._lane_of(ticket.command).backlog.put(ticket)
        except HoldfastError as error:
            self._committed_one(ticket, error)

    def _committed(self, committed: Committed) -> None:
        """A batch is durable: answer it, then tell those who may care."""
        replies = []
        for ticket, outcome in committed.replies:
            if ticket.line is None:
                replies.append((ticket, outcome))
            elif isinstance(outcome, Held):
                self._held(ticket, outcome, committed)
            else:
                self.lines.settled(ticket)
                replies.append((ticket, outcome))
        self._deliver(replies)
        if committed.deadline is not None:
            self._sweep.expect(committed.deadline, committed.now)
        if committed.freed:
            self.lines.wake(committed.freed)
            self._watcher.tell()

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
            self._sweep.expect(outcome.lease.expires_at, committed.now)
        elif outcome.lease.available_at is not None:  # it rests; nobody ends that, it just ends
            self.lines.look_later(outcome.lease.key, (outcome.lease.available_at - committed.now) / SECOND)

    def _committed_one(self, ticket: Ticket, outcome: Any) -> None:
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

    def _attend(self, waiting: bool) -> None:  # noqa: FBT001 - see the store's contract
        self._watcher.attend(waiting)

    def _grace(self) -> list[Command[Any]]:
        """What a lane must do first when the store is back after trouble."""
        return [*self._sweep.grace()]

    def _elsewhere(self) -> None:
        """Another process may have changed the store."""
        self.lines.wake_all()
        self._sweep.look()


class _ThreadSink:
    """Replies to callers that block on a future."""

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        for ticket, outcome in replies:
            if isinstance(outcome, BaseException):
                ticket.slot.set_exception(outcome)
            else:
                ticket.slot.set_result(outcome)
