"""A lane: one thread, one transaction at a time, as many commands in each as are waiting.

It never waits to fill a batch: it takes whatever is queued the moment the last commit returns. One
caller gets one disk flush; a hundred callers share one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from holdfast.core.errors import Refused, StoreUnavailable, Trouble, ValueRefused
from holdfast.core.row import Instant, Key
from holdfast.engine.backlog import MAX_BATCH, Backlog, Ticket
from holdfast.engine.command import Command, Outcome, Queue
from holdfast.engine.steps import freed_names, nearest_deadline
from holdfast.engine.view import View
from holdfast.store.contract import Rerun, StaleConnection, Store
from holdfast.store.needs import AllNeeds
from holdfast.store.rows import Rows
from holdfast.telemetry import metric_names, trace_names
from holdfast.telemetry.registry import Registry, note
from holdfast.telemetry.traces import INTERNAL, Traces

MAX_RERUNS = 50
MAX_LOOKS = 5
"""How often a claim looks again for tasks that another server had locked."""
LOOK_SECONDS = 0.001
ALONE_SECONDS = 10.0
OUTAGE_SECONDS = 5.0

log = logging.getLogger("holdfast.engine")

Reply = tuple[Ticket, Any]

_BATCHES, _COMMANDS, _BATCH_SIZE = metric_names.BATCHES.at(), metric_names.COMMANDS.at(), metric_names.BATCH_SIZE.at()
_PHASES = tuple(metric_names.PHASE_SECONDS.at(phase) for phase in metric_names.PHASES)


class PassedOver(Rerun):
    """A claim came up short, but there is work that another server has locked: look once more."""


class Committed:
    """What a batch left behind that others must hear of."""

    def __init__(self, replies: list[Reply], view: View) -> None:
        self.replies = replies
        self.freed: list[Key] = freed_names(view.steps)
        self.offered: dict[Queue, int] = view.offered()
        self.touched: set[Key] = view.touched()
        self.steps = view.steps
        self.deadline: Instant | None = nearest_deadline(view.steps)
        self.now = view.now


class Outages:
    """What all lanes must know: how often the store failed any of them, and whether this process stood still."""

    def __init__(self) -> None:
        self.count = 0
        self.pulse = time.monotonic()
        """When the sweep, which looks at least once a second, last did."""
        self.writable = True
        """Whether the last batch that tried to write could."""

    def paused(self) -> bool:
        """Nobody renewed while this process was stopped, or asleep with its machine."""
        return time.monotonic() - self.pulse > OUTAGE_SECONDS


class Lane:
    """Runs batches until its backlog is closed."""

    def __init__(
        self,
        number: int,
        store: Store,
        backlog: Backlog,
        outages: Outages,
        *,
        on_commit: Callable[[Committed], None],
        on_return: Callable[[], list[Command[Any]]],
        board: Registry | None = None,
    ) -> None:
        self._number = number
        self._store = store
        self._backlog = backlog
        self._on_commit = on_commit
        self._on_return = on_return
        self._outages = outages
        self._outages_seen = outages.count
        self._alone: dict[str, float] = {}
        self._board = board or Registry()
        self.traces: Traces | None = None
        """Where it tells of its batches, if anybody asked for traces."""
        self.busy_since: float | None = None
        """Since when, by the monotonic clock, it has worked on one batch; None while it waits for one."""
        self.thread = threading.Thread(target=self._run, name=f"holdfast-lane-{number}", daemon=True)

    def _run(self) -> None:
        while (batch := self._backlog.take()) is not None:
            self.busy_since = began = time.monotonic()
            for part in self._parted(batch):
                self._work(part)
            self.busy_since = None
            self._board.add(metric_names.LANE_BUSY, by=time.monotonic() - began)
        self._backlog.finish()

    def _parted(self, batch: list[Ticket]) -> list[list[Ticket]]:
        """The batch, with the commands of accounts that lately sent a poisonous value each on their own."""
        if not self._alone:
            return [batch]
        moment = time.monotonic()
        self._alone = {account: until for account, until in self._alone.items() if until > moment}
        together = [ticket for ticket in batch if ticket.command.account not in self._alone]
        apart = [[ticket] for ticket in batch if ticket.command.account in self._alone]
        return [*([together] if together else []), *apart]

    def _work(self, batch: list[Ticket]) -> None:
        """Run a batch, or tell all of it why not."""
        try:
            if self._outages_seen != self._outages.count or self._outages.paused():
                self._return()
            committed = self._attempt(batch)
        except StaleConnection:  # a new connection finds out whether the store is there, and what it missed meanwhile
            self._outages.count += 1
            self._work(batch)
        except ValueRefused as error:
            self._split(batch, error)
        except UnicodeError as error:
            self._split(batch, ValueRefused(f"a text of this request is no Unicode: {error}"))
        except Trouble as error:
            log.warning("a batch of %d was not written: %s", len(batch), error.message)
            self._outages.count += 1
            self._outages.writable = False
            self._fail(batch, error)
        except Exception as error:
            log.exception("a batch of %d failed", len(batch))
            self._split(batch, error)
        else:
            self._tell(committed)

    def _return(self) -> None:
        """The store may be back: do first what an outage asks for, before anything can expire."""
        count = self._outages.count
        commands = self._on_return()
        for place in range(0, len(commands), MAX_BATCH):
            self._attempt([Ticket(command, _NOBODY) for command in commands[place : place + MAX_BATCH]])
        self._outages_seen = count
        self._outages.pulse = time.monotonic()

    def _attempt(self, batch: list[Ticket]) -> Committed:
        for attempt in range(MAX_RERUNS):
            try:
                return self._transact(batch, look_again=attempt < MAX_LOOKS)
            except PassedOver:
                time.sleep(LOOK_SECONDS * 2**attempt)
            except Rerun:
                continue
        raise StoreUnavailable("too many others write to the same rows")

    def _transact(self, batch: list[Ticket], *, look_again: bool = False) -> Committed:
        """Load, decide, save, commit. Nothing is answered before the commit has returned."""
        began, moment = time.perf_counter(), time.time_ns()
        with self._store.transaction(self._number) as transaction:
            needs = AllNeeds.of([ticket.command.all_needs() for ticket in batch])
            view = View(transaction.load(needs))
            loaded = time.perf_counter()
            decided = [(ticket, *_decide(ticket, view)) for ticket in batch]
            if view.came_up_short and look_again and view.passed_over(transaction.seen_ready(needs)):
                raise PassedOver
            tokens = transaction.draw(view.tokens_drawn) if view.tokens_drawn else []
            replies: list[Reply] = []
            for ticket, outcome, changed in decided:
                reply = outcome.with_tokens(tokens) if isinstance(outcome, Outcome) else outcome
                binding = reply.binding if isinstance(reply, Outcome) else None
                if ticket.command.once is not None and (changed if binding is None else binding):
                    view.remember(ticket.command.remember(reply, view.now))
                replies.append((ticket, reply))
            chosen = time.perf_counter()
            if view.has_changes:
                transaction.save(view.changes(tokens))
            saved = time.perf_counter()
        self._time(len(batch), began, loaded, chosen, saved, time.perf_counter())
        if self.traces is not None:
            causes = dict.fromkeys(ticket.command.cause.traceparent for ticket in batch)
            told = {trace_names.COMMANDS: len(batch)}
            links = [cause for cause in causes if cause]
            self.traces.tell(trace_names.BATCH, INTERNAL, parent="", links=links, attributes=told, began=moment)
        self._outages.writable = self._outages.writable or view.has_changes
        return Committed(replies, view)

    def _time(self, size: int, *moments: float) -> None:
        """Note how large a batch was, and how long each part of its transaction took."""
        cells = self._board.cells
        with self._board.lock:
            cells[_BATCHES] += 1
            cells[_COMMANDS] += size
            note(cells, _BATCH_SIZE, metric_names.SIZES, size)
            for place, before, after in zip(_PHASES, moments, moments[1:], strict=False):
                note(cells, place, metric_names.SHORT_TIMES, after - before)

    def _split(self, batch: list[Ticket], error: Exception) -> None:
        """Find the command that the store will not take; only its owner hears of it."""
        if len(batch) == 1:
            self._alone[batch[0].command.account] = time.monotonic() + ALONE_SECONDS
            self._fail(batch, error)
            return
        middle = len(batch) // 2
        self._work(batch[:middle])
        self._work(batch[middle:])

    def _fail(self, batch: list[Ticket], error: Exception) -> None:
        self._tell(Committed([(ticket, error) for ticket in batch], View(Rows(now=0))))

    def _tell(self, committed: Committed) -> None:
        """Whatever goes wrong while telling, the lane goes on."""
        try:
            self._on_commit(committed)
        except Exception:
            log.exception("the outcome of a batch could not be told")


class _Nobody:
    """Nobody waits for what the lane does of its own accord."""

    def deliver(self, replies: list[Reply]) -> None:
        pass


_NOBODY = _Nobody()


def _decide(ticket: Ticket, view: View) -> tuple[Any, bool]:
    """One command over the view: (its outcome or refusal, whether it changed anything)."""
    view.cause = ticket.command.cause
    steps = len(view.steps)
    try:
        outcome = ticket.command.run(view)
    except Rerun:
        raise
    except Refused as refusal:
        view.undo()
        return refusal, False
    except Exception as error:
        log.exception("%s could not be decided", type(ticket.command).__name__)
        view.undo()
        return error, False
    view.keep()
    return outcome, len(view.steps) > steps
