"""Steps: the changes of rows in a batch, and the records to save, names freed and deadlines that follow from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.core import question as questions
from holdfast.core.event import SNAPSHOT, Cause, difference, make_event
from holdfast.core.lease import Lease
from holdfast.core.question import Question
from holdfast.core.reservation.row import Reservation, indexed_prefixes
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import CLAIMED, FAILED, LIVE_STATES, Task, deadline, dependency_edges, is_claimable
from holdfast.core.task.queue import Queue
from holdfast.store.changes import Changes

R = TypeVar("R", bound=Row)

_WITH_TOKEN: frozenset[type[Row]] = frozenset({Lease, Task, Session, Reservation})


class Step(msgspec.Struct, frozen=True, gc=False):
    """One change of one row."""

    before: Row
    after: Row
    kind: str
    """The verb of its event; empty if only columns changed that the log leaves out."""
    cause: Cause
    new: bool = False
    removed: bool = False


def with_token(row: R, tokens: list[int]) -> R:
    """Replace the placeholder that `View.token` returned by the token drawn from the store."""
    if type(row) in _WITH_TOKEN and row.token < 0:  # type: ignore[attr-defined]
        return replace(row, token=tokens[-row.token - 1])  # type: ignore[attr-defined]
    return row


def build_changes(steps: list[Step], loaded: dict[Key, Row], tokens: list[int], now: Instant) -> Changes:
    """The rows to save and the events of these steps, with real tokens instead of placeholders."""
    changes = Changes({}, {}, {}, loaded, {}, {}, [], [], {})
    last: dict[Key, tuple[Step, Row]] = {}
    touched, events = changes.touched, changes.events
    for step in steps:
        before, after = step.before, step.after
        if tokens:
            before, after = with_token(before, tokens), with_token(after, tokens)
        changed = difference(before, after)
        if step.kind:
            whole = step.kind == SNAPSHOT or (step.new and before.version > 0)
            events.append(make_event(changed, after, step.kind, step.cause, now, whole=whole))
        key = after.key
        # A removed row may be made again in this batch: then it differs from what is stored in any column.
        columns = after.__struct_fields__ if step.removed else changed
        touched[key] = (*touched.get(key, after.required if step.new else ()), *columns)
        last[key] = step, after
    counts: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    # In the order in which rows are locked, so that two servers that insert the same new rows never deadlock.
    for key in sorted(last):
        step, row = last[key]
        first = loaded.get(key)
        if step.removed:
            target = changes.deletes if first is not None else None
        else:
            target = changes.inserts if first is None else changes.updates
        if target is not None:
            target.setdefault(row.table, []).append(row)
        kept = None if step.removed else row
        if row.table == Task.table:
            _count_tasks(counts, first, kept)
            _index_dependencies(changes, first, kept)
        elif row.table == Reservation.table:
            _index_paths(changes, first, kept)
    # New tasks of two servers wait for each other at their unique keys, so they are inserted in that order.
    changes.inserts.get(Task.table, []).sort(key=_by_unique_key)
    changes.counts = {key: counts[key] for key in sorted(counts) if counts[key]}
    return changes


def _count_tasks(counts: dict[tuple[str, str, str], int], before: Row | None, after: Row | None) -> None:
    """Count a task in its new state, and no longer in the one before."""
    if isinstance(before, Task):
        counts[before.account, before.type, before.state] -= 1
    if isinstance(after, Task):
        counts[after.account, after.type, after.state] += 1


def _index_paths(changes: Changes, before: Row | None, after: Row | None) -> None:
    """Note the prefixes under which a reservation is found from now on, and no longer."""
    old, new = _indexed(before), _indexed(after)
    changes.paths_added += sorted(new - old)
    changes.paths_removed += sorted(old - new)


def _index_dependencies(changes: Changes, before: Row | None, after: Row | None) -> None:
    """Note what a task depends on from now on, and no longer: it is new, or was removed."""
    if _depends_on(before) == _depends_on(after):
        return
    old, new = (dependency_edges(row) if isinstance(row, Task) else set() for row in (before, after))
    changes.dependencies_added += sorted(new - old)
    changes.dependencies_removed += sorted(old - new)


def _depends_on(row: Row | None) -> str | None:
    return row.depends_on if isinstance(row, Task) else None


def _indexed(row: Row | None) -> set[tuple[str, str, str, str]]:
    if not isinstance(row, Reservation):
        return set()
    return {(row.account, row.space, prefix, row.id) for prefix in indexed_prefixes(row)}


def _by_unique_key(row: Row) -> tuple[str, str, str]:
    assert isinstance(row, Task)
    return (row.account, row.unique_key or "", row.id)


def freed_names(steps: list[Step]) -> list[Key]:
    """Names that had a holder and have none now: a waiter may want them."""
    return [
        step.after.key
        for step in steps
        if type(step.after) is Lease
        and step.before.proof  # type: ignore[attr-defined]
        and not step.after.proof
    ]


def reopened_queues(steps: list[Step]) -> dict[tuple[str, str], int]:
    """(account, type): how many tasks ended or went back to their queue; 0 if only settings changed."""
    found: defaultdict[tuple[str, str], int] = defaultdict(int)
    for step in steps:
        if isinstance(step.after, Task) and isinstance(step.before, Task):
            if step.before.state in LIVE_STATES and step.after.state not in {CLAIMED, step.before.state}:
                found[step.after.account, step.after.type] += 1
        elif isinstance(step.after, Queue):
            found[step.after.account, step.after.id] += 0
    return dict(found)


def offered_tasks(
    steps: list[Step], rows: Mapping[Key, Row], loaded: Mapping[Key, Row], wall: Instant
) -> dict[tuple[str, str, str], int]:
    """(account, type, required words): how many tasks became claimable and still are.

    Also those that other waiters may take than before, because they have other work now.
    """
    counts: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for key in dict.fromkeys(step.after.key for step in steps if isinstance(step.after, Task)):
        now, before = rows.get(key), loaded.get(key)
        if not isinstance(now, Task) or not is_claimable(now, wall):
            continue
        is_new = not isinstance(before, Task) or not is_claimable(before, wall) or not before.ready
        if is_new or _taken_by(before) != _taken_by(now):
            counts[now.account, now.type, now.requires or ""] += 1
    return counts


def _taken_by(task: Row | None) -> tuple[str | None, ...]:
    """What decides which waiters may take a claimable task."""
    return (task.requires, task.concurrency_key) if isinstance(task, Task) else ()


def failing_workers(steps: list[Step]) -> dict[tuple[str, str, str], set[str]]:
    """(account, type, required words): the workers that have just failed a task of it."""
    found: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for step in steps:
        task = step.before
        if step.kind == FAILED and isinstance(task, Task) and task.worker is not None:
            found[task.account, task.type, task.requires or ""].add(task.worker)
    return found


def freed_reservations(steps: list[Step]) -> list[Reservation]:
    """Reservations, or waits for one, that ended or have fewer paths now: a waiter may want these."""
    return [
        step.after
        for step in steps
        if isinstance(step.after, Reservation)
        and isinstance(step.before, Reservation)
        and indexed_prefixes(step.before)
        and (step.after.ended_at is not None or step.after.paths != step.before.paths)
    ]


def nearest_deadline(steps: list[Step]) -> Instant | None:
    """The first moment at which a changed row expires or becomes due."""
    deadlines = []
    for step in steps:
        row = step.after
        if isinstance(row, Task):
            at = deadline(row)
        else:
            at = questions.deadline(row) if isinstance(row, Question) else getattr(row, "expires_at", None)
        if at is not None:
            deadlines.append(at)
    return min(deadlines, default=None)
