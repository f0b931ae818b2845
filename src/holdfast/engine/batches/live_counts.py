"""Counts of live rows toward limits, exact for the commands of a batch."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core.lease import ELECTION, LOCK, Lease, counts_toward_limit, is_live
from holdfast.core.reservation.row import Reservation, is_waiting
from holdfast.core.row import Row
from holdfast.core.task import CLAIMED, Task
from holdfast.store.rows import Rows


class LiveCounts:
    """The counts that a batch loaded, changed with its rows."""

    def __init__(self, rows: Rows) -> None:
        self._now = rows.now
        self.locks = rows.lock_counts
        self.elections = rows.election_counts
        self.held_tasks = rows.held_tasks
        self.spaces = rows.spaces
        self.running = rows.running
        self.running_by_key = rows.running_by_key
        self.is_needed = bool(
            rows.held_tasks or rows.lock_counts or rows.election_counts or rows.spaces or rows.running
        )

    def add(self, row: Row, step: int) -> None:
        """Count one row more, or one less."""
        now = self._now
        if isinstance(row, Task):
            if row.account in self.held_tasks and is_live(row, now):
                self.held_tasks[row.account] += step
            if row.state == CLAIMED and (row.account, row.type) in self.running:
                self.running[row.account, row.type] += step
                by_key = self.running_by_key.get((row.account, row.type))
                if by_key is not None and row.concurrency_key is not None:
                    by_key[row.concurrency_key] = by_key.get(row.concurrency_key, 0) + step
        elif isinstance(row, Lease):
            owner = (row.account, row.principal or "")
            if owner in self.locks and counts_toward_limit(row, LOCK, now):
                self.locks[owner] += step
            if row.account in self.elections and counts_toward_limit(row, ELECTION, now):
                self.elections[row.account] += step
        elif isinstance(row, Reservation) and (space := (row.account, row.space)) in self.spaces:
            use = self.spaces[space]
            held, waiting = use.held + step * is_live(row, now), use.waiting + step * is_waiting(row, now)
            self.spaces[space] = replace(use, held=held, waiting=waiting)
