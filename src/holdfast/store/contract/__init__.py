"""The interface that every store implements, in small protocols: transactions, reads, housekeeping, deliveries."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.core.row import Instant
from holdfast.store.contract.counts import Counts, Totals
from holdfast.store.contract.deliveries import Deliveries
from holdfast.store.contract.housekeeping import Housekeeping, Watcher
from holdfast.store.contract.reads import Reader, TaskPath
from holdfast.store.contract.rollups import Rollups
from holdfast.store.contract.transactions import (
    ClockStepped,
    MissingDriver,
    NewerSchema,
    NotAStore,
    NotDurable,
    Rerun,
    RowsLocked,
    StaleConnection,
    Transaction,
    UnusableStore,
)
from holdfast.store.damaged_rows import DamagedRows

__all__ = [
    "Clock",
    "ClockStepped",
    "Counts",
    "DamagedRows",
    "Deliveries",
    "Housekeeping",
    "MissingDriver",
    "NewerSchema",
    "NotAStore",
    "NotDurable",
    "Reader",
    "Rerun",
    "Rollups",
    "RowsLocked",
    "StaleConnection",
    "Store",
    "TaskPath",
    "Totals",
    "Transaction",
    "UnusableStore",
    "Watcher",
]

Clock = Callable[[], Instant]
"""A clock that a test drives. Without one a store uses its own."""


class Store(Housekeeping, Protocol):
    """A database of rows, events and deliveries."""

    name: str
    lanes: int
    """How many transactions can usefully run at the same time."""
    is_local: bool
    """Whether a commit waits for nothing but a disk of this machine."""
    clock_jump: Instant
    """By how much its clock was ahead of its last commit when it was opened after a boot: unused time, or an error."""

    damaged_rows: DamagedRows
    """The rows it has set aside."""

    @property
    def deliveries(self) -> Deliveries:
        """The deliveries to webhooks."""

    @property
    def rollups(self) -> Rollups:
        """The roll-ups of the log."""

    def open(self) -> None:
        """Connect and migrate the schema; safe when several processes do it at once."""

    def transaction(self, lane: int = 0) -> AbstractContextManager[Transaction]:
        """Begin a batch."""

    def reserve(self) -> AbstractContextManager[bool]:
        """Keep other writers out while this thread runs batches; yields False if it would have to wait for that.

        Always False for a store that is not local: a thread that has other work must not run its batches.
        """

    def read(self) -> AbstractContextManager[Reader]:
        """Begin reading the committed state."""

    def watch(self, on_change: Callable[[], None]) -> Watcher:
        """Call `on_change` when another process may have freed a name or a task."""

    def close(self) -> None:
        """Close every connection."""
