"""Loading on PostgreSQL from queues with a limit for each concurrency key: which of their tasks are locked and read."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.row import Instant
from holdfast.core.task import Task
from holdfast.core.task.queue import Head
from holdfast.store.key_limits import NEAR, KeyedClaim, keyed_claims, keyed_queues, set_counts
from holdfast.store.needs import AllNeeds
from holdfast.store.postgres import ready_queries as ready
from holdfast.store.postgres.documents import document
from holdfast.store.postgres.results import take, text
from holdfast.store.postgres.wire import ResultRows, Statement
from holdfast.store.rows import LoadedRows


class KeyedLoading:
    """The queues of a batch with a limit for each key, which are locked, and the tasks that its claims need of them.

    Tasks are chosen out of what was read without locks. Other servers cannot claim them meanwhile, because the queues
    are locked; a task that is locked otherwise is skipped.
    """

    def __init__(
        self, run: Callable[..., list[ResultRows]], rows: LoadedRows, needs: AllNeeds, test_time: Instant | None
    ) -> None:
        self._run = run
        self._rows = rows
        self.queues = keyed_queues(rows.queues(), needs)
        self._claims = keyed_claims(needs, self.queues, rows.capabilities_of)
        self._heads: list[tuple[KeyedClaim, list[Head], list[Head]]] = []
        """Of each claim the tasks near the head of its queue, and those that have come due."""
        self._chosen: list[tuple[str, str]] = []
        self.statements: list[Statement] = [(ready.RUNNING_KEYS, (row.account, row.type)) for row in self.queues]
        for claim in self._claims:
            queue = (claim.queue.account, claim.queue.type)
            near = ready.REQUIRING_NEAR if claim.capabilities else ready.KEYED_NEAR
            self.statements += [(near, queue), (ready.DUE_HEADS, (*queue, test_time))]

    def read(self, results: list[ResultRows]) -> None:
        """Read the results of the statements."""
        for queue, counted in zip(self.queues, take(results, len(self.queues)), strict=True):
            running = {text(key): int(count or b"0") for key, count in counted}
            set_counts(queue, running, self._rows.rows)
        near, due = results[::2], results[1::2]
        self._heads = [
            (claim, _heads(first), _heads(last)) for claim, first, last in zip(self._claims, near, due, strict=True)
        ]

    def choose(self) -> list[tuple[str, str]]:
        """(account, task) of the tasks that the batch needs and has not loaded."""
        self._chosen = []
        for claim, near, due in self._heads:
            for limit in claim.queue.limits:
                heads = self._near_or_all(claim, near, limit) + claim.choose(self._usable(claim, due), limit)
                self._chosen += [(claim.queue.account, head.id) for head in heads]
        return sorted({key for key in self._chosen if (Task.table, *key) not in self._rows.known})

    @property
    def has_skipped(self) -> bool:
        """Whether tasks that claims could take were locked by another server."""
        return any((Task.table, *key) not in self._rows.known for key in self._chosen)

    def _usable(self, claim: KeyedClaim, heads: list[Head]) -> list[Head]:
        """Those that are not known to be damaged."""
        return [head for head in heads if (Task.table, claim.queue.account, head.id) not in self._rows.damaged]

    def _near_or_all(self, claim: KeyedClaim, near: list[Head], limit: int) -> list[Head]:
        """The tasks to load: out of those near the head of the queue, or of all."""
        chosen = claim.choose(self._usable(claim, near), limit)
        if len(chosen) >= claim.most or len(near) < NEAR:
            return chosen
        queue = (claim.queue.account, claim.queue.type)
        sets = [""]
        if claim.capabilities:
            (listed,) = self._run((ready.ALLOWED_SETS, (*queue, claim.capabilities)))
            sets = [text(words) for (words,) in listed]
        groups = (*queue, document(sets), claim.most + len(self._rows.damaged))
        statements: list[Statement] = [(ready.KEYED_HEADS, (*groups, document(claim.queue.full_keys(limit))))]
        if claim.capabilities:
            statements.append((ready.KEYLESS_HEADS, groups))
        with_key, *keyless = (self._usable(claim, _heads(found)) for found in self._run(*statements))
        return claim.choose(with_key, limit) + [head for found in keyless for head in found]


def _heads(found: ResultRows) -> list[Head]:
    return [
        Head(text(task_id), None if key is None else text(key), None if words is None else text(words))
        for task_id, key, words in found
    ]
