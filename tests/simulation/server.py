"""A simulated server: the real engine, whose threads (lane, sweep, cleanup, timer) the world runs step by step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import HoldfastError
from holdfast.core.row import SECOND, Instant
from holdfast.engine.engine import Engine
from holdfast.engine.retention import Retention
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs.questions import AnswerQuestion, AskTask
from holdfast.engine.verbs.queues import ChangeQueue, OpenQueue
from holdfast.operations.table import OPERATIONS_BY_NAME
from holdfast.transport.http.access.auth import check_scope
from tests.simulation.database import Connection, Notices
from tests.simulation.dispatcher import Dispatcher
from tests.simulation.virtual_time import VirtualTimer

if TYPE_CHECKING:
    from tests.simulation.world import Request, World

RETENTION = Retention(tasks=60 * SECOND, events=60 * SECOND, names=60 * SECOND)

LATE_SWEEP = 3 * SECOND

_OPERATIONS: dict[type, str] = {
    AskTask: "ask_task",
    AnswerQuestion: "answer_question",
    OpenQueue: "set_queue",
    ChangeQueue: "set_queue",
}
"""Commands of operations for which the scope of the caller's key is checked here too."""


class ServerCrashed(BaseException):
    """The process is gone: nothing of it runs any more, no handler of an error either."""


class Server:
    """One process. After a crash another one takes its place."""

    notices: Notices

    def __init__(self, world: World, number: int, *, serving: bool) -> None:
        self.world = world
        self.number = number
        self.serving = serving
        self.is_alive = True
        self.is_ready = False
        """Whether it accepts requests: not before grace was given."""
        self.in_transaction = False
        self.in_background = False
        """Whether its sweep or its cleanup waits for a result."""
        self.swept_at: Instant = 0
        self.paused_until: Instant = 0
        self.cut_off_until: Instant = 0
        """Until when it cannot reach the database."""
        self.timer = VirtualTimer()
        self.engine = Engine(Connection(world.database, self), serving=serving, retention=RETENTION, timer=self.timer)
        self.engine.sweep.heartbeat.wait = lambda seconds: world.let_others_run(self, seconds)
        self.engine.watch()
        self.dispatcher = Dispatcher(self)
        self.lane = self.engine.lanes.all[0]

    def __str__(self) -> str:
        return f"{'server' if self.serving else 'program'} {self.number}"

    def check_alive(self) -> None:
        if not self.is_alive:
            raise ServerCrashed

    def start(self) -> None:
        """Give grace after an outage, then accept requests; a start that fails ends the process."""
        try:
            self._run_in_background(self.engine.sweep.recover)
            self.is_ready = True
        except HoldfastError:
            self.world.crash(self)

    def stop(self) -> None:
        """Answer everyone who waits, finish what is queued, and record that it stopped on purpose."""
        self.engine.drain()
        while self.has_work():
            self.run_lane()
        if self.serving:
            self.engine.sweep.record_stop()

    def receive(self, request: Request) -> None:
        try:
            operation = _OPERATIONS.get(type(request.command))
            if operation is not None:
                check_scope(request, OPERATIONS_BY_NAME[operation].scope)
            request.ticket = self.engine.submit(request.command, self, request, request.operation.wait_seconds)
        except HoldfastError as error:
            self.world.network.answer(self, request, error)

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        """Sink of all its requests."""
        for ticket, outcome in replies:
            self.world.network.answer(self, ticket.slot, outcome)

    def has_work(self) -> bool:
        """Whether its lane has anything to run."""
        return bool(self.engine._backlog.size()) or self.lane._locked_rows.pause is not None

    def run_lane(self) -> None:
        """Run what is queued, as one batch."""
        self.check_alive()
        batch = self.engine._backlog.take(0)
        self.in_transaction = True
        try:
            self.lane.run(batch or [])
        finally:
            self.in_transaction = False

    def is_sweep_due(self) -> bool:
        sweep = self.engine.sweep
        return sweep._wakeup.is_set() or sweep._alarm <= self.world.time.monotonic()

    def is_sweep_late(self) -> bool:
        """Whether its last pass began longer ago than the thread of a running process ever sleeps, and a bit more."""
        return self.world.time.now - self.swept_at > LATE_SWEEP

    def run_sweep(self) -> None:
        self.swept_at = self.world.time.now
        self.engine.sweep._wakeup.clear()
        self._run_in_background(self.engine.sweep.run_pass)

    def run_cleanup(self) -> None:
        with suppress(HoldfastError):  # its thread logs it and tries again a minute later
            self._run_in_background(self.engine.sweep.cleanup.run)

    def run_signals(self) -> None:
        """Run what is due by its timer, and react to other servers' commits."""
        now = self.world.time.monotonic()
        self.timer.run_due(now)
        self.notices.run(now)

    def next_moment(self) -> float:
        """When any of its threads runs next."""
        moments = (self.engine.sweep._alarm, self.timer.next_moment(), self.notices.next_moment())
        return min(moment for moment in moments if moment is not None)

    def _run_in_background(self, action: Callable[[], Any]) -> None:
        self.check_alive()
        self.in_background = True
        try:
            action()
        finally:
            self.in_background = False
