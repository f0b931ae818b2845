"""The transaction of a batch (load, draw tokens, save), and the errors of a store."""

from __future__ import annotations

from typing import ClassVar, Protocol

from holdfast.core.row import Instant
from holdfast.store.changes import Changes
from holdfast.store.needs import AllNeeds
from holdfast.store.rows import Rows


class Transaction(Protocol):
    """One batch. Leaving it normally after `save` commits; leaving it in any other way changes nothing."""

    def load(self, needs: AllNeeds, lock_seconds: float | None = None) -> Rows:
        """Everything the batch needs, locked until this transaction ends, in one fixed order.

        Raises RowsLocked if another transaction holds a lock for longer than `lock_seconds`; None means as long as
        is right for a whole batch. So does the end of the transaction.
        """

    def count_claimable(self, needs: AllNeeds) -> dict[tuple[str, str, str], int] | None:
        """(account, type, capabilities): how many claimable tasks there are, also those that another server has locked.

        Without capabilities of those that require none. Counted up to the number in `needs.ready`. None if no other
        server can write meanwhile.
        """

    def draw(self, count: int) -> list[int]:
        """That many fencing tokens, ascending, each larger than every token drawn before."""

    def advance_tokens(self, floor: int) -> None:
        """Let every token that is drawn from now on be larger than `floor`, if the transaction commits."""

    def set_clock(self, to: Instant) -> None:
        """Set the store's clock back, with this transaction; a store that uses the database's clock leaves it."""

    def save(self, changes: Changes) -> None:
        """Write all changed rows, their events and the remembered answers, in bulk."""


class Rerun(Exception):
    """Another transaction wrote first: load again and decide again. The engine handles it; callers never see it."""


class RowsLocked(Exception):
    """Another transaction has locked a row of the batch for longer than the batch may wait; nothing was changed."""


class ClockStepped(Exception):
    """The database's clock was set: deadlines must be adjusted before the batch runs again."""

    def __init__(self, steps: tuple[Instant, ...]) -> None:
        super().__init__(f"the clock was set by {steps} microseconds")
        self.steps = steps
        """Each step, in order: forward, or negative if the clock was set back."""


class StaleConnection(Exception):
    """The connection broke while it was idle: nothing was sent on it, so the batch can run on a new one."""


class UnusableStore(Exception):
    """The store at this address cannot be served as it is. The message contains what to do."""

    code: ClassVar[str]


class NewerSchema(UnusableStore):
    """The database was written by a newer Holdfast, so this one must not write to it."""

    code = "newer_schema"


class NotAStore(UnusableStore):
    """A backup, or an unfinished copy: serving it would grant tokens twice, or lose data that is not copied yet."""

    code = "no_store"


class NotDurable(UnusableStore):
    """The database is configured so that a crash can lose or damage what it has committed."""

    code = "not_durable"


class MissingDriver(UnusableStore):
    """The package that connects to this kind of database is not installed."""

    code = "missing_driver"
