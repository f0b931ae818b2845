"""Metrics of a committed batch, counted from its steps and its replies in one pass."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from holdfast.core import lease as leases
from holdfast.core import task as tasks
from holdfast.core.errors import LeaseLost, LeaseMismatch, LeaseSuperseded, Refused, TaskClaimed
from holdfast.core.lease import Lease
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.batches.steps import Step
from holdfast.engine.command import Held
from holdfast.engine.verbs.job_claims import Done
from holdfast.engine.verbs.locks import Delayed
from holdfast.engine.verbs.reservations import FilesHeld
from holdfast.engine.verbs.tasks.claiming import Busy, Empty
from holdfast.telemetry import metric_names
from holdfast.telemetry.registry import Registry, observe_at

if TYPE_CHECKING:
    from holdfast.engine.batches.transaction import Committed

_CONFLICTS = (Held, FilesHeld, LeaseLost, LeaseMismatch, LeaseSuperseded, TaskClaimed)
_FAMILIES: dict[type[Row], str] = {Task: "task", Session: "session", Reservation: "reservation"}
_UNAVAILABLE = (Held, FilesHeld, Delayed, Busy, TaskClaimed)
"""Outcomes of a claim that is not possible now: held by another, delayed, or the session has a task in flight."""
_NOT_GRANTED: tuple[tuple[Any, str], ...] = (
    (Empty, "empty"),
    (Done, "done"),
    (_UNAVAILABLE, "held"),
    (Refused, "refused"),
)
_ENDINGS = frozenset({"expired", "dead_lettered", "cancelled"})
"""Event verbs of steps by which a lease may have expired."""
_REPORTED = frozenset({tasks.EXHAUSTED, tasks.PERMANENT})
"""Causes of dead letters whose workers have reported a failure."""
_COUNTERS: dict[tuple[str, str], int] = {
    **{(family, "claimed"): metric_names.CLAIMS.at(family, "granted") for family in metric_names.CLAIMED},
    **{(family, "renewed"): metric_names.RENEWALS.at(family) for family in metric_names.FAMILIES},
    **{
        (family, how): metric_names.RELEASES.at(family, how)
        for family in metric_names.CLAIMED
        for how in metric_names.RELEASES.labels["how"]
    },
    ("reservation", "reserved"): metric_names.CLAIMS.at("reservation", "granted"),
    ("task", "created"): metric_names.CREATED.at(),
    ("task", "completed"): metric_names.COMPLETED.at(),
    ("task", "failed"): metric_names.FAILED.at(),
    ("task", "cancelled"): metric_names.CANCELLED.at(),
    ("task", "requeued"): metric_names.REQUEUED.at(),
}
"""(family, event verb): the counter that every such step increments."""


class BatchMetrics:
    """Adds committed batches to the metrics registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def conflicts(self, committed: Committed) -> int:
        """Count the claims that were not granted; returns how many replies were conflicts with another holder."""
        found: defaultdict[int, int] = defaultdict(int)
        conflicts = 0
        for ticket, outcome in committed.replies:
            is_conflict, why = _classify(outcome)
            conflicts += is_conflict
            family = ticket.command.claims
            if why is None or not family:
                continue
            if is_conflict and not ticket.is_waiting:
                found[metric_names.CONTENDED.at(family)] += 1
            if ticket.deadline is None or ticket.is_last_try or why == "refused":  # otherwise it keeps waiting
                found[metric_names.CLAIMS.at(family, why)] += 1
        self._add(found)
        return conflicts

    def changes(self, committed: Committed) -> tuple[int, int]:
        """Count the steps; returns (leases that expired, tasks that became dead letters)."""
        found: defaultdict[int, int] = defaultdict(int)
        delays: list[tuple[str, float]] = []
        dead = lapses = 0
        for step in committed.steps:
            family = _family(step)
            cell = _COUNTERS.get((family, step.kind))
            if cell is not None:
                found[cell] += 1
            if step.kind == "claimed":
                if _last_holder_expired(step.before):
                    found[metric_names.TAKEOVERS.at(family)] += 1
            elif step.kind in _ENDINGS and family:
                at = step.before.expires_at  # type: ignore[attr-defined]
                lapsed = at is not None and at <= committed.now
                cause = step.after.dead_cause if step.kind == "dead_lettered" else None  # type: ignore[attr-defined]
                if cause is not None:
                    dead += 1
                    found[metric_names.DEAD_LETTERS.at(cause)] += 1
                    found[metric_names.FAILED.at()] += cause in _REPORTED
                # The last two also by a session's end.
                if lapsed or step.kind == "expired" or cause == tasks.LEASE_EXPIRED:
                    found[metric_names.EXPIRIES.at(family)] += 1
                if lapsed:
                    delays.append((family, (committed.now - at) / SECOND))
                    lapses += family != "session"
        self._add(found, delays)
        return lapses, dead

    def _add(self, found: dict[int, int], delays: list[tuple[str, float]] | None = None) -> None:
        if not found:
            return
        cells = self._registry.cells
        with self._registry.lock:
            for cell, count in found.items():
                cells[cell] += count
            for family, seconds in delays or ():
                observe_at(cells, metric_names.LATENESS.at(family), metric_names.DELAYS, seconds)


_Class = tuple[bool, str | None]
_CLASSES: dict[type, _Class] = {}


def _classify(outcome: Any) -> _Class:
    """(whether it is a conflict with another holder, why a claim with this outcome was not granted or None if it was).

    Cached by type: an isinstance check of a Struct costs more than everything else here.
    """
    kind = type(outcome)
    if kind not in _CLASSES:
        why = next((why for kinds, why in _NOT_GRANTED if issubclass(kind, kinds)), None)
        _CLASSES[kind] = issubclass(kind, _CONFLICTS), why
    return _CLASSES[kind]


def _family(step: Step) -> str:
    """The family of a step: job, lock, election, reservation, task or session; empty for other rows."""
    row_type = type(step.after)
    if row_type is Lease:
        return step.after.kind or step.before.kind or ""  # type: ignore[attr-defined]
    return _FAMILIES.get(row_type, "")


def _last_holder_expired(row: Row) -> bool:
    """Whether the previous holder's lease expired: then this claim is a takeover."""
    if row.ended is None:  # type: ignore[attr-defined]
        return False
    if isinstance(row, Task):
        attempt = tasks.last_attempt(row)
        return attempt is not None and attempt.outcome == tasks.EXPIRED
    ending = leases.last_ending(row) if isinstance(row, Lease) else None
    return ending is not None and ending.how == leases.EXPIRED
