"""Counts what a batch did, from the steps it took and the answers it gave. One pass, once it is durable."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from holdfast.core import lease as leases
from holdfast.core import task as tasks
from holdfast.core.errors import LeaseLost, LeaseMismatch, LeaseSuperseded, Refused, TaskClaimed
from holdfast.core.lease import Lease
from holdfast.core.row import SECOND, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.command import Held
from holdfast.engine.steps import Step
from holdfast.engine.verbs.locks import Delayed
from holdfast.engine.verbs.tasks.queueing import Busy, Empty
from holdfast.telemetry import metric_names
from holdfast.telemetry.registry import Registry, note

if TYPE_CHECKING:
    from holdfast.engine.lane import Committed

_MET_ANOTHER = (Held, LeaseLost, LeaseMismatch, LeaseSuperseded, TaskClaimed)
_FAMILIES: dict[type[Row], str] = {Task: "task", Session: "session"}
_HELD = (Held, Delayed, Busy, TaskClaimed)
"""Somebody has it, or it rests, or the claimer's lane is taken."""
_ENDINGS = frozenset({"expired", "dead_lettered", "cancelled"})
"""What the log calls a step by which a holder may have run out of time."""
_SIMPLE: dict[tuple[str, str], int] = {
    **{(family, "claimed"): metric_names.CLAIMS.at(family, "granted") for family in metric_names.CLAIMED},
    **{(family, "renewed"): metric_names.RENEWALS.at(family) for family in metric_names.FAMILIES},
    **{
        (family, how): metric_names.RELEASES.at(family, how)
        for family in metric_names.CLAIMED
        for how in metric_names.RELEASES.labels["how"]
    },
    ("task", "created"): metric_names.CREATED.at(),
    ("task", "completed"): metric_names.COMPLETED.at(),
    ("task", "failed"): metric_names.FAILED.at(),
    ("task", "cancelled"): metric_names.CANCELLED.at(),
    ("task", "requeued"): metric_names.REQUEUED.at(),
}
"""(family, kind of step): what it counts as, whatever else is true of it."""


class BatchMetrics:
    """Writes to the board what happened."""

    def __init__(self, board: Registry) -> None:
        self._board = board

    def conflicts(self, committed: Committed) -> int:
        """Count the claims that got nothing; how many of all answers told of another holder."""
        found: Counter[int] = Counter()
        conflicts = 0
        for ticket, outcome in committed.replies:
            met, how = _meaning(outcome)
            conflicts += met
            family = ticket.command.claims
            if how is None or not family:
                continue
            if met and not ticket.in_line:
                found[metric_names.CONTENDED.at(family)] += 1
            if ticket.deadline is None or ticket.last_try or how == "refused":  # else it goes on waiting
                found[metric_names.CLAIMS.at(family, how)] += 1
        self._add(found)
        return conflicts

    def changes(self, committed: Committed) -> tuple[int, int]:
        """Count what changed; (holders not heard of in time, tasks given up)."""
        found: Counter[int] = Counter()
        late: list[tuple[str, float]] = []
        dead = lapses = 0
        for step in committed.steps:
            family = _family(step)
            place = _SIMPLE.get((family, step.kind))
            if place is not None:
                found[place] += 1
            if step.kind == "claimed":
                if _was_cut_off(step.before):
                    found[metric_names.TAKEOVERS.at(family)] += 1
            elif step.kind in _ENDINGS and family:
                at = step.before.expires_at  # type: ignore[attr-defined]
                lapsed = at is not None and at <= committed.now
                cause = step.after.dead_cause if step.kind == "dead_lettered" else None  # type: ignore[attr-defined]
                if cause is not None:
                    dead += 1
                    found[metric_names.DEAD_LETTERS.at(cause)] += 1
                    found[metric_names.FAILED.at()] += cause != tasks.LAPSED
                if lapsed or step.kind == "expired" or cause == tasks.LAPSED:  # the last two also by a session's end
                    found[metric_names.EXPIRIES.at(family)] += 1
                if lapsed:
                    late.append((family, (committed.now - at) / SECOND))
                    lapses += family != "session"
        self._add(found, late)
        return lapses, dead

    def _add(self, found: Counter[int], late: list[tuple[str, float]] | None = None) -> None:
        if not found:
            return
        cells = self._board.cells
        with self._board.lock:
            for place, many in found.items():
                cells[place] += many
            for family, seconds in late or ():
                note(cells, metric_names.LATENESS.at(family), metric_names.DELAYS, seconds)


_Meaning = tuple[bool, str | None]
_MEANINGS: dict[type, _Meaning] = {}


def _meaning(outcome: Any) -> _Meaning:
    """(whether it tells of another holder, why a claim that is answered so got nothing: None if it did get it).

    Found out once for each type: to ask whether a Struct is an instance of another costs more than all the rest here.
    """
    kind = type(outcome)
    if kind not in _MEANINGS:
        why = "held" if issubclass(kind, _HELD) else "refused" if issubclass(kind, Refused) else None
        _MEANINGS[kind] = issubclass(kind, _MET_ANOTHER), "empty" if issubclass(kind, Empty) else why
    return _MEANINGS[kind]


def _family(step: Step) -> str:
    """Whose step it is: a job's, a lock's, an election's, a task's or a session's; else nobody's."""
    row_type = type(step.after)
    if row_type is Lease:
        return step.after.kind or step.before.kind or ""  # type: ignore[attr-defined]
    return _FAMILIES.get(row_type, "")


def _was_cut_off(row: Row) -> bool:
    """Whether its last holder's time ran out."""
    if row.ended is None:  # type: ignore[attr-defined]
        return False
    if isinstance(row, Task):
        attempt = tasks.last_attempt(row)
        return attempt is not None and attempt.outcome == tasks.EXPIRED
    story = leases.last_ending(row) if isinstance(row, Lease) else None
    return story is not None and story.how == leases.EXPIRED
