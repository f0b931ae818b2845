"""Roll-ups in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.errors import DamagedRow
from holdfast.core.event import Event
from holdfast.core.rollups.rollup import Rollup, merge
from holdfast.core.row import Instant
from holdfast.decoding import decoder
from holdfast.store.contract.rollups import MAX_DELAYED, CountedEvents, CountedUntil, UncountedLog
from holdfast.store.sql import rollup_queries as queries

if TYPE_CHECKING:
    from holdfast.store.sql.store import Execute, SqlStore

_decode = decoder(Rollup)


class SqlRollups:
    """Roll-ups in a database, each a JSON document, written in separate transactions, not in batches."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._damaged = store.damaged_rows

    def uncounted(self, not_since: Instant, limit: int) -> list[UncountedLog]:
        """Accounts with uncounted events, the ones that were saved first at the front."""
        with self._store.read() as reader:
            return [UncountedLog(*found) for found in reader.execute(queries.UNCOUNTED, not_since, limit)]

    def add(self, counted: Sequence[CountedEvents], keep_since: Mapping[Instant, Instant]) -> list[str]:
        """Move cursors and merge what was counted. Servers that do so at once lock the accounts in one order."""
        moved = []
        with self._store.write() as (execute, now):
            for each in sorted(counted, key=lambda each: each.account):
                if _move(execute, each, now):
                    self._merge(execute, each)
                    for length, since in keep_since.items():
                        execute(queries.DELETE_OLD, each.account, length, since)
                    moved.append(each.account)
        return moved

    def _merge(self, execute: Execute, counted: CountedEvents) -> None:
        for interval, rollup in sorted(counted.rollups.items(), key=lambda item: item[0]):
            key = (counted.account, *interval)
            before = [self._rollup(key, body) for (body,) in execute(queries.BODY, *key)]
            body = msgspec.json.encode(merge(before[0] if before else Rollup(), rollup))
            execute(queries.SAVE, *key, body.decode())

    def tasks_before(self, account: str, versions: Mapping[str, int]) -> dict[str, tuple[str | None, Event | None]]:
        """Of each task its type and its last event below a version."""
        wanted = msgspec.json.encode(list(versions.items())).decode()
        with self._store.read() as reader:
            found = list(reader.execute(queries.TASKS_BEFORE, account, wanted, account, account))
        return {
            task_id: (
                task_type if isinstance(task_type, str) else None,
                None if values[0] is None else self._damaged.events([tuple(values)])[0],
            )
            for task_id, task_type, *values in found
        }

    def delayed_tasks(self, account: str) -> dict[str, int]:
        """How many pending tasks of each type are not in their queue."""
        with self._store.read() as reader:
            return {str(found): count for found, count in reader.execute(queries.DELAYED_TASKS, account, MAX_DELAYED)}

    def counted_until(self, account: str) -> CountedUntil | None:
        """How far an account's log is counted."""
        with self._store.read() as reader:
            return next((CountedUntil(*found) for found in reader.execute(queries.COUNTED_UNTIL, account)), None)

    def page(self, account: str, length: Instant, since: Instant) -> list[tuple[Instant, Rollup]]:
        """The intervals since then, and the last one before."""
        with self._store.read() as reader:
            found = list(reader.execute(queries.PAGE, account, length, account, length, since))
        return [(start, self._rollup((account, length, start), body)) for start, body in found]

    def _rollup(self, key: tuple[str, Instant, Instant], body: Any) -> Rollup:
        """The roll-up of a row; an empty one if the row is damaged, which is logged and counted."""
        try:
            return _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
            self._damaged.add(DamagedRow("rollups", tuple(map(str, key)), f"its body is no roll-up: {error}", {}))
            return Rollup()


def _move(execute: Execute, counted: CountedEvents, now: Instant) -> bool:
    """Move a cursor from where it was read; False if it is elsewhere, or gone because the account was erased."""
    cursor = (counted.seq, counted.counted_to, now, counted.account)
    if counted.cursor is None:
        return bool(execute(queries.ADD_CURSOR, *cursor))
    return bool(execute(queries.MOVE_CURSOR, *cursor, counted.cursor))
