"""The sweep: a thread that sleeps until the next deadline and then ends expired rows, within milliseconds."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from holdfast.core.errors import HoldfastError, ServerOutdated, StoreUnavailable
from holdfast.core.event import Cause
from holdfast.core.lease import Lease
from holdfast.core.question import Question
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND, Instant, Key
from holdfast.core.task import Task
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.command import Command
from holdfast.engine.expiry import ExpireLease, ExpireReservation, ExpireSession, GiveGrace, UpdateDueTask
from holdfast.engine.failed_rows import FailedRows
from holdfast.engine.outages import OUTAGE_SECONDS, Outages
from holdfast.engine.retention import Retention
from holdfast.engine.server_heartbeat import BEAT_SECONDS, ServerHeartbeat
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs.questions import ExpireQuestion
from holdfast.store.contract import Store
from holdfast.telemetry.heartbeats import LoopHeartbeats
from holdfast.telemetry.registry import Registry

MAX_SLEEP = 1.0
"""Seconds: the store is read at least this often, because other processes set deadlines too."""
SHORT_SLEEP = 0.05
MAX_DUE = 1_000
"""Rows ended in one pass."""
STUCK_SECONDS = 10.0
"""A sweep that has not run for longer than this is reported as stuck."""

log = logging.getLogger("holdfast.sweep")


class Sweep:
    """The thread that ends expired leases, reservations, tasks, questions and sessions.

    It also gives grace after an outage.
    """

    def __init__(
        self,
        store: Store,
        submit: Callable[..., Ticket],
        outages: Outages,
        *,
        serving: bool,
        retention: Retention | None = None,
        on_failure: Callable[[], None] = lambda: None,
        loop_heartbeats: LoopHeartbeats | None = None,
    ) -> None:
        self._store = store
        self._submit = submit
        self._outages = outages
        self._serving = serving
        self.heartbeat = ServerHeartbeat(store, outages, serving=serving)
        self.failed_rows = FailedRows(on_failure)
        self._on_failure = on_failure
        self._wakeup = threading.Event()
        self._stopped = False
        self._in_trouble = False
        self._outage: Instant | None = None
        """The last heartbeat before an outage for which grace is being given."""
        self._alarm = 0.0
        self._schema_checked_at = 0.0
        self._loop_heartbeats = loop_heartbeats or LoopHeartbeats(Registry())
        self.cleanup = Cleanup(store, self._run_all, retention or Retention(), self._loop_heartbeats)
        self.swept_at: Instant | None = None
        """When it last ran, by the store's clock."""
        self._thread = threading.Thread(target=self._run, name="holdfast-sweep", daemon=True)

    def start(self) -> None:
        """Give grace after an outage, then start the thread."""
        self.recover()
        self._loop_heartbeats.expect("sweep", STUCK_SECONDS)
        self._thread.start()
        self.cleanup.start()

    def stop(self) -> None:
        """Stop the thread; a server records that it stopped on purpose."""
        self.cleanup.stop()
        self._stopped = True
        self._wakeup.set()
        self._thread.join()
        if self._serving:
            self.record_stop()

    def record_stop(self) -> None:
        """Record that it stopped on purpose. After a pause or an outage it does not: holders are still owed grace."""
        if not self._in_trouble and not self._outages.is_paused():
            self.heartbeat.record_stop()

    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def expect(self, deadline: Instant, now: Instant) -> None:
        """Wake up in time for a deadline."""
        alarm = time.monotonic() + (deadline - now) / SECOND
        if alarm < self._alarm:
            self._alarm = alarm
            self._wakeup.set()

    def wake(self) -> None:
        """Run now: another process may have set an earlier deadline."""
        self._wakeup.set()

    def grace_commands(self) -> list[GiveGrace]:
        """The commands that give grace to holders that could not renew during an outage; none without an outage."""
        last_beat, now = self.heartbeat.last_service()
        if last_beat is None or now - last_beat <= OUTAGE_SECONDS * SECOND:
            self._outages.record_check(0.0 if last_beat is None else (now - last_beat) / SECOND)
            return []
        with self._store.read() as reader:
            keys = reader.held_at(last_beat)
        self._outage = last_beat
        outage = (now - last_beat) / SECOND
        log.warning("no server was running for %.1f s: %d holders get grace", outage, len(keys))
        return [
            GiveGrace(
                account=key[1], cause=_CAUSE, key=key, last_beat=last_beat, unless_changed_since=not self._serving
            )
            for key in keys
        ]

    def close_outage(self) -> None:
        """Record that grace was given after an outage."""
        if self._outage is not None:
            self.heartbeat.close_outage(self._outage)
        self._outage = None

    def recover(self) -> None:
        """Give grace after an outage, before the first pass; in an embedded program the lane does so."""
        began = self._outages.now()
        if self._serving:
            self._give_grace()
            self.heartbeat.write()  # a server that is killed before its first pass has an outage too
        self._outages.record_run(began)

    def _give_grace(self) -> None:
        """Give grace to every holder, or raise: until then nothing may expire, and no heartbeat may hide the outage.

        The holder of a damaged row gets none: it cannot expire either.
        """
        commands = self.grace_commands()
        results = self._run_all(commands)
        self.failed_rows.update()
        failed = {command.key for command, result in zip(commands, results, strict=True) if result is None}
        if failed - self.failed_rows.set_aside.keys():
            raise StoreUnavailable("grace could not be given to every holder")
        self.heartbeat.forget_outage()

    def _run(self) -> None:
        while not self._stopped:
            self._wakeup.wait(self.run_pass())
            self._wakeup.clear()

    def run_pass(self) -> float:
        """Run one pass; returns the seconds until the next one, unless an earlier deadline is set meanwhile."""
        self._alarm = math.inf  # a deadline set from here on may wake it
        began = self._outages.now()
        try:
            self._check_minimum_schema()
            if self._serving and (self._in_trouble or self._outages.is_paused()):
                self._give_grace()
            self._outages.record_run(began)
            sleep = self._run_once()
            self._in_trouble = False
        except ServerOutdated as error:
            self._outages.record_trouble(error)
            sleep = MAX_SLEEP
        except HoldfastError as error:
            log.warning("the sweep could not read the store: %s", error.message)
            self._on_failure()
            self._in_trouble, sleep = True, MAX_SLEEP
        except Exception:
            log.exception("the sweep failed")
            self._on_failure()
            self._in_trouble, sleep = True, MAX_SLEEP
        sleep = max(min(sleep, self._alarm - time.monotonic()), 0.0)
        self._alarm = time.monotonic() + sleep
        return sleep

    def _check_minimum_schema(self) -> None:
        """Once a second, see whether a newer server has raised the store's minimum schema."""
        now = time.monotonic()
        if now - self._schema_checked_at >= BEAT_SECONDS:
            self._store.check_minimum_schema()
            self._schema_checked_at = now

    def _run_once(self) -> float:
        """End what has expired; returns the seconds until more may be due."""
        with self._store.read() as reader:
            found = reader.due(MAX_DUE + len(self.failed_rows.set_aside))
            deadline, now = reader.next_deadline(), reader.now
        self.failed_rows.update()
        due = [key for key in found if key not in self.failed_rows.set_aside]
        if self._serving and self._outages.is_paused():
            return 0.0  # stopped since the beginning of this pass: a heartbeat now would hide the outage
        self.swept_at = now
        self._beat(has_deadlines=deadline is not None)
        self._loop_heartbeats.beat("sweep")
        if due and not self._serving and self.heartbeat.is_kept():
            return SHORT_SLEEP
        if due:
            ended = self._run_all([expiry_command(key) for key in due])
            # Another process was faster, or a row is damaged: run again soon, but do not spin.
            return 0.0 if any(ended) else SHORT_SLEEP
        if deadline is None:
            return MAX_SLEEP
        if deadline <= now:
            return SHORT_SLEEP  # only rows that were set aside are due
        return min(max((deadline - now) / SECOND, 0.0) + 0.0005, MAX_SLEEP)

    def _beat(self, *, has_deadlines: bool) -> None:
        """Record that a server runs, while any row has a deadline: only then does an outage matter."""
        if self._serving and has_deadlines and self.heartbeat.write_if_due():
            self._loop_heartbeats.beat("beat")

    def _run_all(self, commands: Sequence[Command[bool]]) -> list[bool | None]:
        """Run the commands through the lanes, a thousand at a time: each result, or None for one that failed."""
        results: list[bool | None] = []
        for start in range(0, len(commands), MAX_DUE):
            futures: list[Future[bool | None]] = []
            for command in commands[start : start + MAX_DUE]:
                future: Future[bool | None] = Future()
                self._submit(command, self.failed_rows, future)
                futures.append(future)
            results += [future.result() for future in futures]
        return results


_CAUSE = Cause("sweep", "")


def expiry_command(key: Key) -> Command[bool]:
    """The command that ends an expired row."""
    table, account, row_id = key
    if table == Lease.table:
        return ExpireLease(account=account, cause=_CAUSE, name=row_id)
    if table == Reservation.table:
        return ExpireReservation(account=account, cause=_CAUSE, reservation_id=row_id)
    if table == Task.table:
        return UpdateDueTask(account=account, cause=_CAUSE, task_id=row_id)
    if table == Question.table:
        return ExpireQuestion(account=account, cause=_CAUSE, question_id=row_id)
    return ExpireSession(account=account, cause=_CAUSE, session_id=row_id)
