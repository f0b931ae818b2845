"""Loading of rows on SQLite: by their keys, and the claimable tasks of queues, which may have settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import apsw
import msgspec

from holdfast.core.errors import DamagedRow
from holdfast.core.row import Instant, Row
from holdfast.core.task import Task
from holdfast.core.task.capabilities import may_take, next_allowed, sets_of_few
from holdfast.core.task.queue import Queue
from holdfast.store.damaged_rows import DamagedRows
from holdfast.store.needs import AllNeeds
from holdfast.store.rows import LoadedRows
from holdfast.store.sqlite import queries
from holdfast.store.sqlite import ready_queries as ready
from holdfast.store.sqlite.results import fetch

_encode = msgspec.json.Encoder().encode


class RowLoading:
    """The part of a transaction that adds rows to those that a batch has loaded."""

    _execute: Callable[..., apsw.Cursor]
    _damaged_rows: DamagedRows
    wall: Instant

    def _add_queues(self, rows: LoadedRows, needs: AllNeeds) -> dict[tuple[str, str], int]:
        """Add the settings of the queues; returns how many tasks of each run."""
        if not needs.queues and not needs.queues_of:
            return {}
        named = [queue for queue in needs.queues if queue[1]]
        accounts = [account for account, task_type in needs.queues if not task_type]
        wanted = (document(named), document(accounts), document(needs.queues_of))
        self._add_found(rows, Queue, ready.QUEUES_OF, wanted)
        return {(row.account, row.id): self._value(ready.RUNNING, (row.account, row.id)) for row in rows.queues()}

    def _add_claimable(self, rows: LoadedRows, needs: AllNeeds, running: dict[tuple[str, str], int]) -> None:
        """Add the first tasks of each queue that is open, or that the batch may open."""
        if not needs.ready:
            return
        closed = needs.closed_queues(rows.queues(), running, rows.rows.values())
        split = needs.split_accounts(rows.queue_names())
        needs = needs.in_open_queues(closed, {account: self._ready_types(account) for account in split})
        self._add_ready(rows, needs.ready)
        if needs.requiring:
            self._add_requiring(rows, needs)

    def _ready_types(self, account: str) -> list[str]:
        """The types that have claimable tasks."""
        found = [*fetch(self._execute, ready.READY_TYPES, (account,))]
        found += fetch(self._execute, ready.GROUPED_TYPES, (account,))
        found += fetch(self._execute, ready.DUE_TYPES, (account, self.wall))
        return sorted({name for (name,) in found})

    def _add_ready(self, rows: LoadedRows, queues: list[tuple[str, str, int]]) -> None:
        """Add the first tasks of each queue, and scheduled tasks that have come due but are not marked ready yet."""
        for account, task_type, limit in queues:
            queue = (account, task_type) if task_type else (account,)
            self._add_first(rows, ready.READY if task_type else ready.READY_ANY, queue, limit)
            self._add_first(rows, ready.DUE_TASKS if task_type else ready.DUE_TASKS_ANY, (*queue, self.wall), limit)

    def _add_requiring(self, rows: LoadedRows, needs: AllNeeds) -> None:
        """Add the first tasks of each queue that require no more than a claim's capabilities, and at least one."""
        for account, task_type, capabilities, limit in needs.capable_claims(rows.capabilities_of):
            queue = (account, task_type) if task_type else (account,)
            few = sets_of_few(capabilities)
            first = ready.READY_REQUIRING if task_type else ready.READY_REQUIRING_ANY
            last = ready.DUE_REQUIRING if task_type else ready.DUE_REQUIRING_ANY
            damaged = -1
            while damaged < len(rows.damaged):  # those in the place of damaged ones may be of other sets
                damaged = len(rows.damaged)
                sets = document(few or self._allowed_sets(task_type, queue, capabilities, limit + damaged))
                self._add_found(rows, Task, first, (*queue, sets, limit + damaged))
            due_sets = document(few or self._due_sets(task_type, queue, capabilities))
            self._add_first(rows, last, (*queue, self.wall, due_sets), limit)

    def _allowed_sets(self, task_type: str, queue: tuple[str, ...], capabilities: str, limit: int) -> list[str]:
        """The sets of required words to which the first tasks of a queue belong that a claim may take."""
        query = ready.READY_NEAR if task_type else ready.READY_NEAR_ANY
        able = (words for (words,) in fetch(self._execute, query, queue) if may_take(capabilities, words))
        near = [*islice(able, limit)]
        if len(near) == limit:
            return sorted(set(near))
        return self._list_sets(task_type, queue, capabilities)

    def _due_sets(self, task_type: str, queue: tuple[str, ...], capabilities: str) -> list[str]:
        """The sets of required words of tasks that have come due, as far as a claim may take them."""
        query = ready.DUE_SETS if task_type else ready.DUE_SETS_ANY
        found = fetch(self._execute, query, (*queue, self.wall))
        return [words for (words,) in found if may_take(capabilities, words)]

    def _list_sets(self, task_type: str, queue: tuple[str, ...], capabilities: str) -> list[str]:
        """The sets of required words of ready tasks that a claim may take."""
        query = ready.READY_SET if task_type else ready.READY_SET_ANY
        found: list[str] = []
        start: str | None = ""
        while start is not None and (step := fetch(self._execute, query, (*queue, start))):
            ((words,),) = step
            found += [words] if may_take(capabilities, words) else []
            start = next_allowed(capabilities, words)
        return found

    def _add_first(self, rows: LoadedRows, query: str, arguments: tuple[Any, ...], limit: int) -> None:
        """Add the first tasks of a queue, others in the place of damaged ones."""
        damaged = -1
        while damaged < len(rows.damaged):
            damaged = len(rows.damaged)
            self._add_found(rows, Task, query, (*arguments, limit + damaged))

    def _add(self, rows: LoadedRows, row_type: type[Row], query: str, keys: Sequence[Any]) -> None:
        """Add the rows with these keys, in one statement."""
        if keys:
            self._add_found(rows, row_type, query, (document(keys),))

    def _add_found(
        self, rows: LoadedRows, row_type: type[Row], query: str, arguments: tuple[Any, ...]
    ) -> list[Row | DamagedRow]:
        """Add the rows that a statement finds, and return them."""
        found: Any
        try:
            found = self._execute(query, arguments).fetchone()
        except apsw.SQLError:  # one of the rows has a blob
            found = self._execute(queries.with_blobs(row_type, query), arguments).fetchone()
        decoded = self._damaged_rows.decode_document(row_type, found[0])
        rows.add(decoded)
        return decoded

    def _value(self, query: str, arguments: tuple[Any, ...]) -> int:
        row: Any = self._execute(query, arguments).fetchone()
        return int(row[0])


def document(records: Sequence[Any]) -> str:
    return _encode(records).decode()
