"""Loading on SQLite from queues with a limit for each concurrency key."""

from __future__ import annotations

from typing import Any

from holdfast.core.task import Task
from holdfast.core.task.queue import Head
from holdfast.store.concurrency_keys import (
    LimitedClaim,
    LimitedQueue,
    limited_claims,
    limited_queues,
    running_by_key,
    set_ending,
)
from holdfast.store.needs import AllNeeds
from holdfast.store.rows import LoadedRows
from holdfast.store.sqlite import queries
from holdfast.store.sqlite import ready_queries as ready
from holdfast.store.sqlite.claim_start import ClaimStarts
from holdfast.store.sqlite.loading import RowLoading, document
from holdfast.store.sqlite.results import fetch


class ConcurrencyLoading(RowLoading):
    """The part of a transaction that adds tasks whose keys have room."""

    _claim_starts: ClaimStarts

    def _count_keys(self, rows: LoadedRows, needs: AllNeeds) -> list[LimitedQueue]:
        """The queues with a limit for each key, and how many tasks of each key run."""
        limited = limited_queues(rows.queues(), needs)
        for queue in limited:
            counted = fetch(self._execute, ready.RUNNING_KEYS, (queue.account, queue.type))
            queue.running = {key: count for key, count in counted if isinstance(key, str)}  # others are damaged
            set_ending(queue, rows.rows)
        return limited

    def _add_with_room(self, rows: LoadedRows, needs: AllNeeds) -> dict[tuple[str, str], dict[str, int]]:
        """Add the first tasks of these queues that the batch could claim; returns how many run, by key."""
        limited = self._count_keys(rows, needs) if rows.queues() else []
        if not limited:
            return {}
        for claim in limited_claims(needs, limited, rows.capabilities_of):
            for limit in claim.queue.limits:
                damaged = -1
                while damaged < len(rows.damaged):  # others are loaded in the place of damaged ones
                    damaged = len(rows.damaged)
                    if claim.most == 1 and not claim.capabilities and self._add_first_with_room(rows, claim, limit):
                        continue
                    ids = [head.id for head in self._choose(rows, claim, limit)]
                    missing = [each for each in ids if (Task.table, claim.queue.account, each) not in rows.rows]
                    keys = [(claim.queue.account, task_id) for task_id in missing]
                    self._add(rows, Task, queries.ROW_BY_KEY[Task.table], keys)
        return running_by_key(limited)

    def _add_first_with_room(self, rows: LoadedRows, claim: LimitedClaim, limit: int) -> bool:
        """Add the first task whose key has room, unless others have come due; returns whether there is one."""
        queue, enough = (claim.queue.account, claim.queue.type), claim.enough(len(rows.damaged), only_allowed=True)
        if fetch(self._execute, ready.DUE_HEADS, (*queue, self.wall)):
            return False
        keys = claim.queue.full_keys(limit)
        wanted = (*queue, document(keys), enough)
        self._claim_starts.begin(self._value(ready.DATA_VERSION, ()))
        start = None if rows.damaged else self._claim_starts.start(queue, keys)
        found = [] if start is None else self._add_found(rows, Task, ready.KEYED_FROM, (*wanted, *start))
        if len(found) < enough:
            found = self._add_found(rows, Task, ready.KEYED_FIRST, wanted)
        if len(found) == 1 and isinstance(found[0], Task):
            self._claim_starts.remember(queue, found[0], keys)
        return len(found) == enough

    def _choose(self, rows: LoadedRows, claim: LimitedClaim, limit: int) -> list[Head]:
        """The tasks to load: out of those near the head of the queue, or of all, and of those that have come due."""
        queue = (claim.queue.account, claim.queue.type)

        def read(query: str, *more: Any) -> list[Head]:
            found = (Head(*values) for values in fetch(self._execute, query, (*queue, *more)))
            return [head for head in found if (Task.table, claim.queue.account, head.id) not in rows.damaged]

        due = claim.choose(read(ready.DUE_HEADS, self.wall), limit)
        enough = claim.enough(len(rows.damaged), only_allowed=not claim.capabilities)
        near, beyond = ready.KEYED_NEAR, ready.KEYED_BEYOND
        if claim.capabilities:
            near, beyond = ready.REQUIRING_NEAR, ready.REQUIRING_BEYOND
        full = document(claim.queue.full_keys(limit))
        found = read(near, full, enough)
        chosen = claim.choose(found, limit)
        is_filled = len(chosen) >= claim.most
        if is_filled or (len(found) + len(rows.damaged) < enough and not self._value(beyond, queue)):
            return chosen + due
        sets = document(self._list_sets(queue[1], queue, claim.capabilities) if claim.capabilities else [""])
        damaged = len(rows.damaged)
        keyless = read(ready.KEYLESS_HEADS, sets, claim.most + damaged) if claim.capabilities else []
        of_key = claim.most_of_key(limit) + damaged
        with_key = read(ready.KEYED_HEADS, sets, of_key, full)
        return claim.choose(with_key, limit) + keyless + due
