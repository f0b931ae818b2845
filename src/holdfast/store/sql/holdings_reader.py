"""The reads of SQLite and PostgreSQL about what sessions and principals hold, and about reservations and questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from holdfast.core.lease import Lease
from holdfast.core.question import Question
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.contract.counts import HeldCounts
from holdfast.store.sql import holding_queries
from holdfast.store.sql.records import SqlRecords

H = TypeVar("H", Lease, Task, Reservation)
A = TypeVar("A", bound=Lease | Task | Reservation | Session)


class HoldingsReader(SqlRecords):
    """Reads what is held."""

    now: Instant

    def holdings(
        self, row_type: type[H], session: tuple[str, str], after: str, limit: int, max_bytes: int | None = None
    ) -> list[H]:
        """The ephemeral leases, the tasks or the reservations that a session holds."""
        query = holding_queries.HOLDINGS[row_type.table]
        return self.page(row_type, query, (limit, max_bytes), *session, after)

    def reservations(
        self, account: str, space: str | None, after: tuple[str, str], limit: int, max_bytes: int | None = None
    ) -> list[Reservation]:
        """Open reservations of a space, or of all spaces."""
        size = (limit, max_bytes)
        if space is None:
            return self.page(Reservation, holding_queries.RESERVATIONS, size, account, *after)
        return self.page(Reservation, holding_queries.RESERVATIONS_OF_SPACE, size, account, space, after[1])

    def reservations_covering(self, account: str, space: str, prefixes: Sequence[str]) -> list[Reservation]:
        """Open reservations with a pattern under one of these prefixes."""
        wanted = msgspec.json.encode([(prefix,) for prefix in prefixes]).decode()
        return self.rows(Reservation, holding_queries.RESERVATIONS_COVERING, account, wanted, account, space)

    def questions(
        self, account: str, after: tuple[Instant, str], limit: int, max_bytes: int | None = None, *, is_open: bool
    ) -> list[Question]:
        """Open questions, the oldest first, or closed ones, the newest first."""
        query = holding_queries.OPEN_QUESTIONS if is_open else holding_queries.CLOSED_QUESTIONS
        return self.page(Question, query, (limit, max_bytes), account, *after)

    def count_open_questions(self, account: str, limit: int) -> int:
        """How many questions are open, counted up to a limit."""
        return int(self.value(holding_queries.COUNT_OPEN_QUESTIONS, account, limit))

    def questions_of_tasks(self, account: str, task_ids: Sequence[str]) -> list[tuple[str, str]]:
        """(task, question) of every question of these tasks."""
        wanted = msgspec.json.encode([(task_id,) for task_id in task_ids]).decode()
        return [(task, row_id) for task, row_id in self.execute(holding_queries.QUESTIONS_OF_TASKS, wanted, account)]

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
        where = (account, after, self.now, principal_id, owner, owner)
        return self.page(row_type, holding_queries.HELD_BY[row_type.table], (limit, max_bytes), *where)

    def held_counts(self, account: str) -> HeldCounts:
        """How much an account holds now."""
        where = (account, self.now, account, self.now, account, account, self.now)
        leases, reservations, tasks = next(iter(self.execute(holding_queries.COUNT_HELD, *where)))
        return HeldCounts(leases, reservations, int(tasks))
