"""What a stored thing is: frozen columns, a key inside an account, a version that counts its events."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

Instant = int
"""Microseconds since 1970 by the store's clock."""

SECOND: Instant = 1_000_000

Key = tuple[str, str, str]
"""(table, account, id): names one row in every store."""


class Row(msgspec.Struct, frozen=True):
    """One row. Its fields are its columns, in order; all are plain scalars, so every store keeps them alike."""

    table: ClassVar[str]
    noun: ClassVar[str]
    """What events call it: the subject of `lease:deploy/web` is a lease."""
    hashed: ClassVar[frozenset[str]] = frozenset()
    """Columns that events show only by hash and size."""
    json: ClassVar[frozenset[str]] = frozenset()
    """Columns that hold JSON text."""
    booleans: ClassVar[frozenset[str]] = frozenset()
    """Columns that are true or false, for databases that have to be told."""

    parts: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Columns that change together, for stores that save only what changed; the others are always saved."""

    hidden: ClassVar[frozenset[str]] = frozenset()
    """Columns of which events show only whether there is anything."""

    special: ClassVar[frozenset[str]] = frozenset()
    """All columns that events do not show as they are."""

    account: str
    id: str
    version: int = 0
    """How many events this row has; 0 means that it was never stored."""
    changed_at: Instant = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.special = cls.hashed | cls.json | cls.hidden

    @property
    def key(self) -> Key:
        """Where this row lives."""
        return (self.table, self.account, self.id)
