"""Ends every lease of a restored store, because some may have ended after the backup was taken."""

from __future__ import annotations

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.errors import DamagedRow
from holdfast.core.event import Cause
from holdfast.core.lease import RESTORED, Lease
from holdfast.core.log_gap import ACTOR
from holdfast.core.reservation import lifecycle
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Key
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.batches.dependencies import update_dependents
from holdfast.engine.expiry import task_verb
from holdfast.engine.view import View
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.sqlite import SqliteStore

ROWS_PER_BATCH = 500
_HELD = (
    "SELECT 'leases', account, id FROM leases WHERE expires_at IS NOT NULL"
    " UNION ALL SELECT 'reservations', account, id FROM reservations WHERE ended_at IS NULL"
    " UNION ALL SELECT 'tasks', account, id FROM tasks WHERE expires_at IS NOT NULL"
    " UNION ALL SELECT 'sessions', account, id FROM sessions WHERE ended_at IS NULL ORDER BY 1, 2, 3"
)


def end_leases(store: SqliteStore) -> int:
    """End every lease on a name or a task, and every open session; returns how many leases that were."""
    with store.read() as reader:
        held: list[Key] = [(table, account, row_id) for table, account, row_id in reader.execute(_HELD)]
    for first in range(0, len(held), ROWS_PER_BATCH):
        keys = tuple(held[first : first + ROWS_PER_BATCH])
        with store.transaction() as transaction:
            view = View(transaction.load(AllNeeds.of([Needs(rows=keys)])))
            view.cause = Cause(ACTOR, "")
            for key in keys:
                _end(view, key)
            update_dependents(view, 0)
            transaction.save(view.changes([]))
    return sum(table != Session.table for table, _, _ in held)


def _end(view: View, key: Key) -> None:
    try:
        row = view.at(key)
    except DamagedRow:  # nobody can use it
        return
    if isinstance(row, Lease):
        view.put(leases.end_by_restore(row, view.now), leases.RELEASED)
    elif isinstance(row, Reservation):
        view.put(lifecycle.end_by_restore(row, view.now), RESTORED)
    elif isinstance(row, Task):
        ended = tasks.end_by_restore(row, view.now, view.wall)
        view.put(ended, task_verb(ended, tasks.RELEASED))
    elif isinstance(row, Session):
        view.put(sessions.end(row, RESTORED, view.now), "ended")
