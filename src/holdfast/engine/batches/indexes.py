"""Indexes of a batch's rows: by session, by unique key and by space, also of rows that the batch made or changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from holdfast.core.lease import Lease
from holdfast.core.reservation.row import Reservation, is_open
from holdfast.core.row import Key, Row
from holdfast.core.task import LIVE_STATES, Task

H = TypeVar("H", Lease, Task, Reservation)


class Indexes:
    """Keys that may belong together. Entries are never removed: whoever reads a row checks that it still belongs."""

    def __init__(self, rows: Mapping[Key, Row]) -> None:
        self._rows = rows
        self._of_session: dict[tuple[str, str], set[Key]] = {}
        self._of_space: dict[tuple[str, str], set[Key]] = {}
        self._unique_keys: dict[tuple[str, str], str] = {}

    def add(self, row: Row) -> None:
        """Make a row findable."""
        kind = type(row)
        if kind is Lease or kind is Task or kind is Reservation:
            if row.session is not None:  # type: ignore[attr-defined]
                self._of_session.setdefault((row.account, row.session), set()).add(row.key)  # type: ignore[attr-defined]
            if isinstance(row, Reservation):
                self._of_space.setdefault((row.account, row.space), set()).add(row.key)
            elif isinstance(row, Task) and row.unique_key is not None and row.state in LIVE_STATES:
                self._unique_keys[row.account, row.unique_key] = row.id

    def held_by_session(self, row_type: type[H], account: str, session: str) -> list[H]:
        """What a session holds, by id, so that every store writes the same log; of leases only ephemeral ones."""
        found = (self._rows.get(key) for key in self._of_session.get((account, session), ()))
        held = [row for row in found if isinstance(row, row_type) and row.session == session and _is_bound(row)]
        return sorted(held, key=lambda row: row.id)

    def open_in_space(self, account: str, space: str) -> list[Reservation]:
        """The open reservations of a space, by id."""
        found = (self._rows.get(key) for key in sorted(self._of_space.get((account, space), ())))
        return [row for row in found if isinstance(row, Reservation) and is_open(row)]

    def task_under(self, account: str, unique_key: str) -> Task | None:
        """The live task under a unique key."""
        task = self._rows.get((Task.table, account, self._unique_keys.get((account, unique_key), "")))
        found = task if isinstance(task, Task) else None
        return found if found is not None and found.unique_key == unique_key and found.state in LIVE_STATES else None


def _is_bound(row: Lease | Task | Reservation) -> bool:
    """Whether it ends with its session."""
    return row.ephemeral if isinstance(row, Lease) else row.proof is not None
