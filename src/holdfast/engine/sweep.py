"""The sweep: sleeps until the next deadline, then ends what has run out. Takeover follows within milliseconds."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from holdfast.core.errors import HoldfastError, StoreUnavailable
from holdfast.core.event import Cause
from holdfast.core.lease import Lease
from holdfast.core.row import SECOND, Instant, Key
from holdfast.core.task import Task
from holdfast.engine.backlog import Ticket
from holdfast.engine.command import Command
from holdfast.engine.expiry import ExpireLease, ExpireSession, GiveGrace, SettleTask
from holdfast.engine.lane import OUTAGE_SECONDS, Outages
from holdfast.engine.retention import Retention, Tidying
from holdfast.store.contract import Store
from holdfast.telemetry.heartbeats import LoopHeartbeats
from holdfast.telemetry.registry import Registry

LONGEST_SLEEP = 1.0
"""Other processes' leases are looked for at least this often."""
SHORT_SLEEP = 0.05
BEAT_SECONDS = 1.0
AT_ONCE = 1_000
STUCK_SECONDS = 10.0
"""A sweep that has not looked for so long is stuck."""

log = logging.getLogger("holdfast.sweep")


class Sweep:
    """One thread beside the lanes."""

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
        self._sink = _QuietSink(on_failure)
        self._on_failure = on_failure
        self._wake = threading.Event()
        self._stopped = False
        self._in_trouble = False
        self._alarm = 0.0
        self._last_beat = 0.0
        self._loop_heartbeats = loop_heartbeats or LoopHeartbeats(Registry())
        self.tidying = Tidying(store, self._run_all, retention or Retention(), self._loop_heartbeats)
        self.swept_at: Instant | None = None
        """When it last looked for what has run out, by the store's clock."""
        self._thread = threading.Thread(target=self._run, name="holdfast-sweep", daemon=True)

    def start(self) -> None:
        """Give grace after an outage, then watch the clock."""
        self._give_grace()
        self._outages.pulse = time.monotonic()
        self._loop_heartbeats.expect("sweep", STUCK_SECONDS)
        self._thread.start()
        self.tidying.start()

    def stop(self) -> None:
        """Stop watching; a server says that it ends on purpose."""
        self.tidying.stop()
        self._stopped = True
        self._wake.set()
        self._thread.join()
        if self._serving:
            try:
                self._store.beat(clean=True)
            except HoldfastError:
                log.warning("the store could not be told that this server ends")

    def is_alive(self) -> bool:
        """Whether it watches."""
        return self._thread.is_alive()

    def expect(self, deadline: Instant, now: Instant) -> None:
        """Something runs out then: wake up in time."""
        alarm = time.monotonic() + (deadline - now) / SECOND
        if alarm < self._alarm:
            self._alarm = alarm
            self._wake.set()

    def look(self) -> None:
        """Another process may have set an earlier deadline."""
        self._wake.set()

    def grace(self) -> list[Command[bool]]:
        """What to do, before anything expires, when nobody served the store for a while: let holders catch up."""
        beat = self._store.last_beat() if self._serving else None
        if beat is None or beat[1] - beat[0] <= OUTAGE_SECONDS * SECOND:
            return []
        seen = beat[0]
        with self._store.read() as reader:
            keys = reader.held_at(seen)
        log.warning("nobody served the store for %.1f s: %d holders get grace", (beat[1] - seen) / SECOND, len(keys))
        return [GiveGrace(account=key[1], cause=_CAUSE, key=key, seen=seen) for key in keys]

    def _give_grace(self) -> None:
        """All of it, or stay in trouble: nothing may expire, and no beat may hide the outage, before it is given."""
        if None in self._run_all(self.grace()):
            raise StoreUnavailable("grace could not be given to everybody")

    def _run(self) -> None:
        while not self._stopped:
            try:
                if self._in_trouble or self._outages.paused():
                    self._give_grace()
                self._outages.pulse = time.monotonic()
                self._alarm = math.inf  # whatever is to run out from here on may wake it up
                sleep = self._pass()
                self._in_trouble = False
            except HoldfastError as error:
                log.warning("the sweep could not look: %s", error.message)
                self._on_failure()
                self._in_trouble, sleep = True, LONGEST_SLEEP
            except Exception:
                log.exception("the sweep failed")
                self._on_failure()
                self._in_trouble, sleep = True, LONGEST_SLEEP
            sleep = max(min(sleep, self._alarm - time.monotonic()), 0.0)
            self._alarm = time.monotonic() + sleep
            self._wake.wait(sleep)
            self._wake.clear()

    def _pass(self) -> float:
        """End what has run out; how long until there may be more."""
        with self._store.read() as reader:
            due = reader.due(AT_ONCE)
            deadline, now = reader.next_deadline(), reader.now
        self.swept_at = now
        self._beat(live=deadline is not None)
        self._loop_heartbeats.beat("sweep")
        if due:
            ended = self._run_all([_ending(key) for key in due])
            # Others were quicker, or a row is bad: look again soon, but do not spin.
            return 0.0 if any(ended) else SHORT_SLEEP
        if deadline is None:
            return LONGEST_SLEEP
        return min(max((deadline - now) / SECOND, 0.0) + 0.0005, LONGEST_SLEEP)

    def _beat(self, *, live: bool) -> None:
        """Say that the store is served, while anybody might miss that."""
        moment = time.monotonic()
        if self._serving and live and moment - self._last_beat >= BEAT_SECONDS:
            self._store.beat()
            self._last_beat = moment
            self._loop_heartbeats.beat("beat")

    def _run_all(self, commands: Sequence[Command[bool]]) -> list[bool | None]:
        """Run them through the lanes, a thousand at a time: what each did, None for one that failed."""
        results: list[bool | None] = []
        for place in range(0, len(commands), AT_ONCE):
            futures: list[Future[bool | None]] = []
            for command in commands[place : place + AT_ONCE]:
                future: Future[bool | None] = Future()
                self._submit(command, self._sink, future)
                futures.append(future)
            results += [future.result() for future in futures]
        return results


class _QuietSink:
    """A failure to end one row is logged and tried again with the next pass."""

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self._on_failure = on_failure

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        for ticket, outcome in replies:
            failed = isinstance(outcome, BaseException)
            if failed:
                log.warning("%s failed: %s", type(ticket.command).__name__, outcome)
                self._on_failure()
            ticket.slot.set_result(None if failed else outcome)


_CAUSE = Cause("sweep", "")


def _ending(key: Key) -> Command[bool]:
    table, account, row_id = key
    if table == Lease.table:
        return ExpireLease(account=account, cause=_CAUSE, name=row_id)
    if table == Task.table:
        return SettleTask(account=account, cause=_CAUSE, task_id=row_id)
    return ExpireSession(account=account, cause=_CAUSE, session_id=row_id)
