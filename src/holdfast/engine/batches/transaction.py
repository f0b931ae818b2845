"""One transaction for all commands of a batch: load, decide, save, commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from holdfast.core.errors import DamagedRow, Refused
from holdfast.core.lease import Lease
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant, Key
from holdfast.core.task import Task
from holdfast.core.task.queue import Queue as TaskQueue
from holdfast.engine.batches.steps import (
    failing_workers,
    freed_names,
    freed_reservations,
    nearest_deadline,
    reopened_queues,
)
from holdfast.engine.command import Offered, Outcome, Queue
from holdfast.engine.ticket import Ticket
from holdfast.engine.view import View
from holdfast.store.contract import Rerun, Store
from holdfast.store.needs import MAX_READY, AllNeeds, Needs, count_hiding
from holdfast.telemetry import metric_names, trace_names
from holdfast.telemetry.registry import Registry, observe_at
from holdfast.telemetry.traces import INTERNAL, Traces

log = logging.getLogger("holdfast.engine")

Reply = tuple[Ticket, Any]

_BATCHES, _COMMANDS, _BATCH_SIZE = metric_names.BATCHES.at(), metric_names.COMMANDS.at(), metric_names.BATCH_SIZE.at()
_PHASES = tuple(metric_names.PHASE_SECONDS.at(phase) for phase in metric_names.PHASES)


class SkippedTasks(Rerun):
    """A claim got too few tasks while another server had locked some: run the batch again."""


class OverdueTasks(Rerun):
    """Tasks whose deadline has passed may hide others from a claim: run the batch again, with more of these queues."""

    def __init__(self, hiding: dict[Queue, int]) -> None:
        super().__init__()
        self.hiding = hiding
        """How many more."""


class Committed:
    """A committed batch and its replies."""

    def __init__(
        self, replies: list[Reply], view: View, unsure: Sequence[Ticket] = (), *, skipped_tasks: bool = False
    ) -> None:
        self.replies = replies
        self.unsure = unsure
        """Claims that found no task beside changes of the batch; another server may have made one ready before."""
        self.skipped_tasks = skipped_tasks
        """Whether claims got too few tasks while another server had locked some."""
        self.steps = view.steps
        self.now = view.now
        self.has_changes: bool = view.has_changes
        self._view = view

    def effects(self) -> Effects:
        """What other parts of the engine must react to."""
        return Effects(self._view)


class Effects:
    """What follows from the changes of a batch: names and tasks that waiters may want, rows that changed, deadlines."""

    def __init__(self, view: View) -> None:
        kinds = {type(step.after) for step in view.steps}
        has_tasks = Task in kinds
        self.freed: list[Key] = freed_names(view.steps) if Lease in kinds else []
        self.freed_reservations: list[Reservation] = freed_reservations(view.steps) if Reservation in kinds else []
        self.offered: dict[Offered, int] = view.offered() if has_tasks else {}
        self.failing_workers: dict[Offered, set[str]] = failing_workers(view.steps) if has_tasks else {}
        self.reopened: dict[Queue, int] = reopened_queues(view.steps) if has_tasks or TaskQueue in kinds else {}
        self.touched: set[Key] = view.touched()
        self.deadline: Instant | None = nearest_deadline(view.steps)


class BatchTransaction:
    """Runs batches on one connection of the store, and measures them."""

    def __init__(self, store: Store, lane: int, registry: Registry) -> None:
        self._store = store
        self._lane = lane
        self._registry = registry
        self.traces: Traces | None = None
        """Where batches are traced; None if tracing is off."""

    def run(self, batch: list[Ticket], lock_seconds: float | None = None, *, retry_skipped: bool = False) -> Committed:
        """Load, decide, save, commit. Nothing is answered before the commit has returned."""
        hiding: dict[Queue, int] = {}
        while True:
            try:
                return self._run_once(batch, lock_seconds, hiding, retry_skipped=retry_skipped)
            except OverdueTasks as found:
                hiding |= found.hiding

    def _run_once(
        self, batch: list[Ticket], lock_seconds: float | None, hiding: dict[Queue, int], *, retry_skipped: bool
    ) -> Committed:
        """Run the batch; it loads so many tasks more of these queues than its claims want."""
        began, began_ns = time.perf_counter(), time.time_ns()
        with self._store.transaction(self._lane) as transaction:
            each = [ticket.needs() for ticket in batch]
            if hiding:
                each.append(Needs(hiding=tuple((*queue, count) for queue, count in hiding.items())))
            needs = AllNeeds.of(each)
            view = View(transaction.load(needs, lock_seconds))
            loaded = time.perf_counter()
            decided = [(ticket, *_decide(ticket, view)) for ticket in batch]
            if needs.ready and (overdue := _find_overdue(needs, view)):
                raise OverdueTasks({queue: 8 * count for queue, count in overdue.items()})
            counted = transaction.count_claimable(needs) if view.has_unfilled_claim else None
            skipped_tasks = counted is not None and view.has_locked_tasks(counted)
            if skipped_tasks and retry_skipped:
                raise SkippedTasks
            is_unsure = retry_skipped and counted is not None and view.has_changes
            unsure = _find_unsure(decided) if is_unsure else []
            if view.token_floor:
                transaction.advance_tokens(view.token_floor)
            tokens = transaction.draw(view.tokens_drawn) if view.tokens_drawn else []
            replies: list[Reply] = []
            for ticket, outcome, changed in decided:
                if ticket in unsure:
                    continue
                reply = outcome.with_tokens(tokens) if isinstance(outcome, Outcome) else outcome
                if ticket.command.keeps_answer(reply, has_changed=changed):
                    view.remember(ticket.command.remember(reply, view.now))
                replies.append((ticket, reply))
            tokens_drawn = time.perf_counter()
            if view.has_changes:
                transaction.save(view.changes(tokens))
            saved = time.perf_counter()
        self._measure(len(batch), began, loaded, tokens_drawn, saved, time.perf_counter())
        self._trace(batch, began_ns)
        return Committed(replies, view, unsure, skipped_tasks=skipped_tasks)

    def _measure(self, size: int, *moments: float) -> None:
        """Count a batch, its size, and the duration of each phase of its transaction."""
        cells = self._registry.cells
        with self._registry.lock:
            cells[_BATCHES] += 1
            cells[_COMMANDS] += size
            observe_at(cells, _BATCH_SIZE, metric_names.SIZES, size)
            for cell, before, after in zip(_PHASES, moments, moments[1:], strict=False):
                observe_at(cells, cell, metric_names.SHORT_TIMES, after - before)

    def _trace(self, batch: list[Ticket], began: int) -> None:
        if self.traces is None:
            return
        causes = dict.fromkeys(ticket.command.cause.traceparent for ticket in batch)
        attributes = {trace_names.COMMANDS: len(batch)}
        links = [cause for cause in causes if cause]
        self.traces.record(trace_names.BATCH, INTERNAL, parent="", links=links, attributes=attributes, began=began)


def _find_overdue(needs: AllNeeds, view: View) -> dict[Queue, int]:
    """The claimed queues with more overdue tasks than were loaded in addition, and how many each has."""
    overdue = {(account, name): view.ready.count_overdue(account, name) for account, name, _ in needs.ready}
    return {
        queue: count for queue, count in overdue.items() if count_hiding(needs.hiding, *queue) < min(count, MAX_READY)
    }


def _find_unsure(decided: list[tuple[Ticket, Any, bool]]) -> list[Ticket]:
    """Claims that would be answered that there is no task. Those that wait are woken by the next one."""
    return [ticket for ticket, outcome, _ in decided if ticket.deadline is None and found_no_task(ticket, outcome)]


def found_no_task(ticket: Ticket, outcome: Any) -> bool:
    """Whether a claim of tasks found none."""
    return ticket.command.claims == Task.noun and isinstance(outcome, Outcome) and outcome.waits


def _decide(ticket: Ticket, view: View) -> tuple[Any, bool]:
    """One command over the view: (its outcome or refusal, whether it changed anything)."""
    view.cause = ticket.command.cause
    steps = len(view.steps)
    try:
        outcome = ticket.run(view)
    except (Refused, DamagedRow) as refusal:
        view.undo()
        refusal.__traceback__ = refusal.__context__ = None  # they would keep the whole batch in memory
        return refusal, False
    except Exception as error:
        log.exception("%s could not be decided", type(ticket.command).__name__)
        view.undo()
        return error, False
    view.keep()
    return outcome, len(view.steps) > steps
