"""Steps: the changes of rows in a batch, and the records to save, names freed and deadlines that follow from them."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.core.event import SNAPSHOT, Cause, difference, make_event
from holdfast.core.lease import Lease
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task, deadline
from holdfast.store.changes import Changes

R = TypeVar("R", bound=Row)

_WITH_TOKEN: frozenset[type[Row]] = frozenset({Lease, Task, Session})


class Step(msgspec.Struct, frozen=True, gc=False):
    """One change of one row."""

    before: Row
    after: Row
    kind: str
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
        whole = step.kind == SNAPSHOT or (step.new and before.version > 0)
        events.append(make_event(changed, after, step.kind, step.cause, now, whole=whole))
        key = after.key
        # A removed row may be made again in this batch: then it differs from what is stored in any column.
        columns = after.__struct_fields__ if step.removed else changed
        touched[key] = (*touched.get(key, after.required if step.new else ()), *columns)
        last[key] = step, after
    counts: Counter[tuple[str, str, str]] = Counter()
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
        if isinstance(row, Task):
            if isinstance(first, Task):
                counts[first.account, first.type, first.state] -= 1
            if not step.removed:
                counts[row.account, row.type, row.state] += 1
    # New tasks of two servers wait for each other at their unique keys, so they are inserted in that order.
    changes.inserts.get(Task.table, []).sort(key=_by_unique_key)
    changes.counts = {key: counts[key] for key in sorted(counts) if counts[key]}
    return changes


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


def nearest_deadline(steps: list[Step]) -> Instant | None:
    """The first moment at which a changed row expires or becomes due."""
    deadlines = []
    for step in steps:
        row = step.after
        at = deadline(row) if isinstance(row, Task) else getattr(row, "expires_at", None)
        if at is not None:
            deadlines.append(at)
    return min(deadlines, default=None)
