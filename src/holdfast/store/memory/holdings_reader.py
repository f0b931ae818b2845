"""The reads of the in-memory store about what sessions and principals hold, and about reservations and questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from holdfast.core.holdings.held_by import is_held_by
from holdfast.core.lease import ELECTION, Lease, is_live
from holdfast.core.page import take_bytes
from holdfast.core.question import OPEN, Question
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.contract.counts import HeldCounts

if TYPE_CHECKING:
    from holdfast.store.memory.store import MemoryStore

R = TypeVar("R", bound=Row)
H = TypeVar("H", Lease, Task, Reservation)
A = TypeVar("A", bound=Lease | Task | Reservation | Session)


class HoldingsReader:
    """Reads what is held."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.now = store.now()
        self.wall = store.wall()

    def _rows(self, row_type: type[R]) -> list[R]:
        rows = self._store.indexes.tables.get(row_type.table, {}).values()
        return [row for row in rows if isinstance(row, row_type)]

    def holdings(
        self, row_type: type[H], session: tuple[str, str], after: str, limit: int, max_bytes: int | None = None
    ) -> list[H]:
        """The ephemeral leases, the tasks or the reservations that a session holds."""
        rows = map(self._store.rows.__getitem__, self._store.indexes.group("session", *session))
        held = [row for row in rows if isinstance(row, row_type) and row.id.encode() > after.encode()]
        return list(take_bytes(sorted(held, key=lambda row: row.id.encode())[:limit], max_bytes))

    def reservations(
        self, account: str, space: str | None, after: tuple[str, str], limit: int, max_bytes: int | None = None
    ) -> list[Reservation]:
        """Open reservations of a space, or of all spaces, in the order of space and id."""
        group = ("reserved in any space", account) if space is None else ("reserved in", account, space)
        first = after if space is None else (space, after[1])
        found = sorted(self._reservations(self._store.indexes.group(*group)), key=_by_space)
        return list(take_bytes([row for row in found if _by_space(row) > first][:limit], max_bytes))

    def reservations_covering(self, account: str, space: str, prefixes: Sequence[str]) -> list[Reservation]:
        """Open reservations with a pattern under one of these prefixes."""
        group = self._store.indexes.group
        keys = {key for prefix in prefixes for key in group("reserved under", account, space, prefix)}
        return sorted(self._reservations(keys), key=_by_space)

    def questions(
        self, account: str, after: tuple[Instant, str], limit: int, max_bytes: int | None = None, *, is_open: bool
    ) -> list[Question]:
        """Open questions, the oldest first, or closed ones, the newest first."""
        found = [row for row in self._rows(Question) if row.account == account and (row.state == OPEN) == is_open]
        found = [row for row in found if (_by_asked(row) > after if is_open else _by_asked(row) < after)]
        return list(take_bytes(sorted(found, key=_by_asked, reverse=not is_open)[:limit], max_bytes))

    def count_open_questions(self, account: str, limit: int) -> int:
        """How many questions are open, counted up to a limit."""
        return len(self.questions(account, (0, ""), limit, is_open=True))

    def questions_of_tasks(self, account: str, task_ids: Sequence[str]) -> list[tuple[str, str]]:
        """(task, question) of every question of these tasks."""
        found = [row for row in self._rows(Question) if row.account == account and row.task in task_ids]
        return [(row.task, row.id) for row in sorted(found, key=lambda row: row.id)]

    def _reservations(self, keys: Iterable[Key]) -> list[Reservation]:
        rows = map(self._store.rows.__getitem__, keys)
        return [row for row in rows if isinstance(row, Reservation)]

    def held_by(
        self,
        row_type: type[A],
        principal: tuple[str, str],
        after: str,
        limit: int,
        max_bytes: int | None = None,
        *,
        owner: str | None = None,
    ) -> list[A]:
        """What a principal holds now, by id."""
        account, principal_id = principal
        rows = [row for row in self._rows(row_type) if row.account == account and row.id.encode() > after.encode()]
        held = [row for row in rows if is_held_by(row, principal_id, self.now, owner)]
        return list(take_bytes(sorted(held, key=lambda row: row.id.encode())[:limit], max_bytes))

    def held_counts(self, account: str) -> HeldCounts:
        """How much an account holds now."""
        leases = [row for row in self._rows(Lease) if row.account == account and is_live(row, self.now)]
        reserved = [row for row in self._rows(Reservation) if row.account == account and is_live(row, self.now)]
        tasks = self._store.indexes.count_held_tasks(account, self.now)
        return HeldCounts(sum(lease.kind != ELECTION for lease in leases), len(reserved), tasks)


def _by_asked(row: Question) -> tuple[Instant, str]:
    return row.asked_at, row.id


def _by_space(row: Reservation) -> tuple[str, str]:
    return row.space, row.id
