"""Rows: frozen columns, a key inside an account, and a version that counts the row's events."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

LATEST = 253_402_300_799_999_999
"""The end of the year 9999."""

Instant = Annotated[int, msgspec.Meta(ge=0, le=LATEST)]
"""Microseconds since 1970 by the store's clock. Rows with a time outside these bounds cannot be read."""

SECOND: Instant = 1_000_000

Key = tuple[str, str, str]
"""(table, account, id) of one row."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row. Its fields are its columns, in order; all are scalars, which every store can keep unchanged.

    Stores load rows as JSON arrays of their columns (`array_like`).
    """

    table: ClassVar[str]
    noun: ClassVar[str]
    """Its name in events: `lease` in the subject `lease:deploy/web`."""
    hashed: ClassVar[frozenset[str]] = frozenset()
    """Columns that events record only by hash and size."""
    json: ClassVar[frozenset[str]] = frozenset()
    """Columns that hold JSON text."""
    booleans: ClassVar[frozenset[str]] = frozenset()
    """Boolean columns, for databases without a boolean type."""

    column_groups: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groups of columns that change together: a store saves only groups that changed, and all other columns."""
    required: ClassVar[tuple[str, ...]] = ()
    """A column of each group that a new row must have, because the databases have no defaults for its columns."""

    hidden: ClassVar[frozenset[str]] = frozenset()
    """Secret columns: events record only whether they are set."""

    unlogged: ClassVar[frozenset[str]] = frozenset()
    """Columns that events leave out, because they change often and mean nothing later."""

    special: ClassVar[frozenset[str]] = frozenset()
    """All columns that events do not record unchanged: hashed, JSON, hidden and unlogged ones."""

    account: str
    id: str
    version: int = 0
    """How many events this row has; 0 means that it was never stored."""
    changed_at: Instant = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.special = cls.hashed | cls.json | cls.hidden | cls.unlogged

    @property
    def key(self) -> Key:
        """The key of this row."""
        return (self.table, self.account, self.id)
