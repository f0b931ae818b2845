"""A lane: runs one transaction at a time, each with the commands that are queued, at most 256.

It never waits to fill a batch: it takes the queued commands as soon as the last commit returns. A single caller costs
one disk flush; a hundred callers share one.

A lane has a thread. While commits are short and nobody else writes, the thread that submitted the command runs the
batch instead. Waking the lane's thread and being woken by it took a quarter of the time of a single request, and with a
hundred callers, changing between two threads under Python's global lock cost as much.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from holdfast.core.errors import StoreUnavailable, Trouble, ValueRefused
from holdfast.core.row import Instant
from holdfast.engine.backlog import MAX_BATCH, Backlog
from holdfast.engine.batches.locked_rows import LOCK_RETRY_SECONDS, SHORTEST_WAIT, LockedRows
from holdfast.engine.batches.transaction import BatchTransaction, Committed, SkippedTasks, found_no_task
from holdfast.engine.clock_repair import step_commands
from holdfast.engine.command import Command
from holdfast.engine.outages import Outages
from holdfast.engine.ticket import NO_SINK, RunSoon, Ticket, run_now
from holdfast.engine.view import View
from holdfast.store.contract import ClockStepped, Rerun, RowsLocked, StaleConnection, Store
from holdfast.store.rows import Rows
from holdfast.telemetry import metric_names
from holdfast.telemetry.registry import Registry

MAX_RERUNS = 50
MAX_SKIPPED_RETRIES = 5
"""How often a claim is repeated at once because another server had locked ready tasks."""
SKIPPED_RETRY_SECONDS = 0.001
ISOLATION_SECONDS = 10.0
"""How long the commands of an account run in batches of one after the store refused a value of that account."""

SHORT_SECONDS = 0.01
"""Batches that take longer than this, on a slow disk for instance, run on the lane's own thread."""

log = logging.getLogger("holdfast.engine")


class TooManyReruns(Exception):
    """A batch lost the race for its rows to other writers again and again."""


class Lane:
    """Runs batches until its backlog is closed."""

    def __init__(
        self,
        number: int,
        store: Store,
        backlog: Backlog,
        outages: Outages,
        *,
        on_commit: Callable[[Committed], Callable[[], None] | None],
        on_return: Callable[[], list[Command[Any]]],
        on_recovered: Callable[[], None] = lambda: None,
        find_claims: Callable[[list[Ticket]], list[Ticket]] = lambda _: [],
        registry: Registry | None = None,
    ) -> None:
        self._store = store
        self._backlog = backlog
        self._on_commit = on_commit
        """Answers a batch; returns what is left to do, which a caller's thread does when it has sent the answers."""
        self._on_return = on_return
        self._on_recovered = on_recovered
        self._find_claims = find_claims
        """Finds claims that wait for what a batch creates: they run at its end, and need no commit of their own."""
        self._outages = outages
        self._outages_seen = outages.count
        self._clock_steps: list[Instant] = []
        """Steps of the store's clock that deadlines do not follow yet."""
        self._moves: list[Command[Any]] = []
        """The commands by which deadlines follow earlier steps, without those that are committed."""
        self._isolated: dict[str, float] = {}
        self._locked_rows = LockedRows()
        self._unsure: list[Ticket] = []
        """Claims that are run again, because they found no task beside changes of their batch."""
        self._registry = registry or Registry()
        self.transaction = BatchTransaction(store, number, self._registry)
        self.busy_since: float | None = None
        """When, by the monotonic clock, it began its current batch; None while it waits for one."""
        self._turn = threading.Lock()
        """Held by the thread that runs a batch."""
        self._usual_seconds = 0.0
        """How long batches took lately."""
        self.seconds_here = 0.0
        """How long it ran batches on the threads of callers."""
        self._run_soon: RunSoon = run_now
        """Runs what is left to do after a batch; on a caller's thread not before other functions that are ready."""
        self.ask_caller: Callable[[], bool] = lambda: False
        """Asks the thread of callers to run what is queued; returns whether it will."""
        self.thread = threading.Thread(target=self._run, name=f"holdfast-lane-{number}", daemon=True)

    def _run(self) -> None:
        while (batch := self._backlog.take(self._locked_rows.pause, self._hand_over)) is not None:
            with self._turn:
                self.run(batch)
        with self._turn:
            self._fail(self._locked_rows.take_all(), _locked())
        self._backlog.finish()

    def _hand_over(self) -> bool:
        """Have the next batches run on the thread of callers again, if that could not run one for a moment."""
        return self._usual_seconds <= SHORT_SECONDS and not self._needs_repair() and self.ask_caller()

    def run_here(self, run_soon: RunSoon) -> bool:
        """Run what is queued on the calling thread, if it would not have to wait; whether everything was run."""
        if self._usual_seconds > SHORT_SECONDS or not self._turn.acquire(blocking=False):
            return False
        try:
            if self._needs_repair():
                return False
            with self._store.reserve() as is_reserved:
                if is_reserved and (batch := self._backlog.take_queued()):
                    began = time.monotonic()
                    self._run_soon = run_soon
                    self.run(batch)
                    self.seconds_here += time.monotonic() - began
        finally:
            self._run_soon = run_now
            self._turn.release()
        return not self._backlog.size()

    def _needs_repair(self) -> bool:
        """Whether the next batch may take long: after an outage or a step of the clock, or beside locked rows."""
        outages = self._outages
        is_interrupted = self._outages_seen != outages.count or outages.is_paused() or outages.must_check_server()
        has_rest = self._isolated or self._moves or self._clock_steps or self._locked_rows.pause is not None
        return is_interrupted or bool(has_rest)

    def run(self, batch: list[Ticket]) -> None:
        """Run a batch, then try again some of the commands whose rows were locked."""
        self.busy_since = began = time.monotonic()
        for group in self._isolate([*batch, *self._find_claims(batch)]):
            self._locked_rows.begin_batch()
            self._work(group)
        self._retry_locked()
        while self._unsure:
            unsure, self._unsure = self._unsure, []
            self._work(unsure)
        self.busy_since = None
        seconds = time.monotonic() - began
        self._usual_seconds += (seconds - self._usual_seconds) / 8
        self._registry.add(metric_names.LANE_BUSY, by=seconds)

    def _isolate(self, batch: list[Ticket]) -> list[list[Ticket]]:
        """The batch, with each command of an isolated account in a batch of one."""
        if not self._isolated:
            return [batch] if batch else []
        now = time.monotonic()
        self._isolated = {account: until for account, until in self._isolated.items() if until > now}
        shared = [ticket for ticket in batch if ticket.command.account not in self._isolated]
        single = [[ticket] for ticket in batch if ticket.command.account in self._isolated]
        return [*([shared] if shared else []), *single]

    def _work(self, batch: list[Ticket], lock_seconds: float | None = None) -> None:
        """Run a batch and report its outcomes; if it fails, every ticket gets the error."""
        try:
            self._follow_clock()
            outages, began = self._outages, self._outages.now()
            if self._outages_seen != outages.count or outages.is_paused() or outages.must_check_server():
                self._recover()
            committed = self._attempt(batch, lock_seconds)
        except StaleConnection:  # a new connection finds out whether the store is reachable
            self._outages.count += 1
            self._work(batch, lock_seconds)
        except RowsLocked:
            self._split_locked(batch, lock_seconds)
        except ValueRefused as error:
            self._split(batch, error)
        except UnicodeError as error:
            self._split(batch, ValueRefused(f"a text in this request is not valid Unicode: {error}"))
        except TooManyReruns as error:
            log.warning("a batch of %d ran too often: %s", len(batch), error)
            self._split(batch, StoreUnavailable(str(error)))
        except Trouble as error:
            log.warning("a batch of %d was not written: %s", len(batch), error.message)
            self._outages.record_trouble(error)
            self._fail(batch, error)
        except Exception as error:
            log.exception("a batch of %d failed", len(batch))
            self._split(batch, error)
        else:
            outages.record_run(began)
            self._report(committed)

    def _recover(self) -> None:
        """Give holders grace after an outage, before anything can expire."""
        count, began = self._outages.count, self._outages.now()
        began = self._run_first(self._on_return(), began)
        self._outages_seen = count
        self._outages.record_run(began)  # first: otherwise the heartbeat that follows would record the pause once more
        self._on_recovered()

    def _run_first(self, commands: list[Command[Any]], began: float) -> float:
        """Run commands that adjust deadlines, before all others; returns when the last batch of them ended.

        Commands are removed from the list when they are committed.
        """
        while commands:
            batch = commands[:MAX_BATCH]
            del commands[:MAX_BATCH]
            try:
                self._attempt([Ticket(command, NO_SINK) for command in batch], LOCK_RETRY_SECONDS)
            except Exception as error:
                commands[:0] = batch
                if isinstance(error, RowsLocked):
                    raise _locked() from error
                raise
            # Grace for many holders may take longer than what counts as a pause.
            self._outages.record_run(began)
            began = self._outages.now()
        return began

    def _follow_clock(self) -> None:
        """Let deadlines follow steps of the store's clock. What fails is done before the next batch.

        The store reports a step once. A command that is committed is not run again: each run may extend a lease.
        """
        while self._clock_steps:
            self._moves += step_commands(self._store, self._clock_steps[0])
            del self._clock_steps[0]
        if self._moves:
            self._run_first(self._moves, self._outages.now())

    def _attempt(self, batch: list[Ticket], lock_seconds: float | None = None) -> Committed:
        is_retry = all(ticket.deadline is not None and ticket.locked_until is not None for ticket in batch)
        skipped_retries = 0 if is_retry else MAX_SKIPPED_RETRIES  # waiting claims that were set aside try later again
        for attempt in range(MAX_RERUNS):
            try:
                done = self.transaction.run(batch, lock_seconds, retry_skipped=attempt < skipped_retries)
            except SkippedTasks:
                time.sleep(SKIPPED_RETRY_SECONDS * 2**attempt)
            except ClockStepped as stepped:
                self._clock_steps += stepped.steps
                self._follow_clock()
            except Rerun:
                continue
            else:
                self._outages.writable = self._outages.writable or done.has_changes
                return done
        raise TooManyReruns("too many other writers use the same rows")

    def _split(self, batch: list[Ticket], error: Exception) -> None:
        """Run the halves of a batch separately, to find the one command that fails: only its caller gets the error."""
        if len(batch) == 1:
            self._isolated[batch[0].command.account] = time.monotonic() + ISOLATION_SECONDS
            self._fail(batch, error)
            return
        middle = len(batch) // 2
        self._work(batch[:middle])
        self._work(batch[middle:])

    def _split_locked(self, batch: list[Ticket], lock_seconds: float | None) -> None:
        """Run the halves of a batch separately, to find the commands whose rows are locked: only these wait."""
        if len(batch) > 1:
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                self._work(half, self._locked_rows.next_wait(lock_seconds))
        elif not self._locked_rows.set_aside(batch[0]):
            self._fail(batch, _locked())

    def _retry_locked(self) -> None:
        """Try again some of the commands whose rows were locked."""
        if tickets := self._locked_rows.take():
            self._work(tickets, SHORTEST_WAIT)

    def _fail(self, batch: list[Ticket], error: Exception) -> None:
        self._report(Committed([(ticket, error) for ticket in batch], View(Rows(now=0))))

    def _report(self, committed: Committed) -> None:
        """Report a batch to the engine; the lane continues even if that fails."""
        self._unsure += committed.unsure
        if committed.skipped_tasks:
            committed.replies = [reply for reply in committed.replies if not self._waits_for_locked_tasks(*reply)]
        try:
            if (rest := self._on_commit(committed)) is not None:
                self._run_soon(rest)
        except Exception:
            log.exception("the outcome of a batch could not be reported")

    def _waits_for_locked_tasks(self, ticket: Ticket, outcome: Any) -> bool:
        """Set aside a waiting claim that found only locked tasks: nobody is notified when they are unlocked."""
        has_time = ticket.deadline is not None and not ticket.is_last_try and time.monotonic() < ticket.deadline
        return has_time and found_no_task(ticket, outcome) and self._locked_rows.set_aside(ticket)


def _locked() -> StoreUnavailable:
    return StoreUnavailable("another transaction has locked a row that this request needs")
