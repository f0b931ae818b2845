"""Loading on PostgreSQL from queues with a limit for each concurrency key: which of their tasks are locked and read."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.core.row import Instant
from holdfast.core.task import Task
from holdfast.core.task.queue import Head
from holdfast.decoding import decoder
from holdfast.store.concurrency_keys import LimitedClaim, limited_claims, limited_queues, set_ending
from holdfast.store.needs import AllNeeds
from holdfast.store.postgres import ready_queries as ready
from holdfast.store.postgres.parameters import document
from holdfast.store.postgres.pipeline import ResultRows, Statement
from holdfast.store.postgres.results import document_of, take, text
from holdfast.store.rows import LoadedRows


class ConcurrencyLoading:
    """The queues of a batch with a limit for each key, which are locked, and the tasks that its claims need of them.

    Tasks are chosen out of what was read without locks. Other servers cannot claim them meanwhile, because the queues
    are locked; a task that is locked otherwise is skipped. As a rule the first tasks of keys that are not full are
    chosen, so these are locked and read with the counts, in the same round trip.
    """

    def __init__(
        self, run: Callable[..., list[ResultRows]], rows: LoadedRows, needs: AllNeeds, test_time: Instant | None
    ) -> None:
        self._run = run
        self._rows = rows
        self.queues = limited_queues(rows.queues(), needs)
        for queue in self.queues:
            set_ending(queue, rows.rows)
        claims = limited_claims(needs, self.queues, rows.capabilities_of)
        self._claims = [(claim, limit) for claim in claims for limit in claim.queue.limits]
        self._heads: list[tuple[list[Head], bool, list[Head]]] = []
        """Of each claim and limit the tasks near the head of the queue, whether others follow, and those come due."""
        self._chosen: list[tuple[str, str]] = []
        self._plain: dict[tuple[str, str], list[str]] = {}
        """By (account, type): the first tasks that have no key and require nothing. They are loaded like those of other
        queues."""
        claimed = [(claim.queue.account, claim.queue.type) for claim in claims]
        self._others = [queue for queue in self.queues if (queue.account, queue.type) not in claimed]
        self.statements: list[Statement] = [(ready.RUNNING_KEYS, (row.account, row.type)) for row in self._others]
        for claim, limit in self._claims:
            of_queue = (claim.queue.account, claim.queue.type, test_time)
            self.statements += [self._near(claim, limit), (ready.DUE_HEADS, of_queue)]

    def _near(self, claim: LimitedClaim, limit: int) -> Statement:
        """The statement that reads the tasks near the head of a queue, and locks and loads the first of them."""
        damaged = len(self._rows.damaged)
        counts = (claim.enough(damaged, only_allowed=True), claim.most + damaged)
        near = (claim.queue.account, claim.queue.type, limit, document(sorted(claim.queue.ending)), *counts)
        return (ready.REQUIRING_NEAR, (*near, claim.capabilities)) if claim.capabilities else (ready.KEYED_NEAR, near)

    def read(self, results: list[ResultRows]) -> list[ResultRows]:
        """Read the results of the statements; returns those that have tasks which are locked."""
        for queue, counted in zip(self._others, take(results, len(self._others)), strict=True):
            queue.running = _decode_counts(document_of(counted))
        near, due = results[::2], results[1::2]
        for (claim, _), first in zip(self._claims, near, strict=True):
            claim.queue.running = _decode_counts(first[0][4] or b"{}")
            if not claim.capabilities:
                self._plain[claim.queue.account, claim.queue.type] = _decode_ids(first[0][5] or b"[]")
        self._heads = [
            ([Head(*head) for head in _decode_heads(first[0][2] or b"[]")], first[0][3] == b"t", _heads(last))
            for first, last in zip(near, due, strict=True)
        ]
        return near

    def choose(self) -> list[tuple[str, str]]:
        """(account, task) of the tasks that the batch needs and has not loaded."""
        self._chosen = []
        for (claim, limit), (near, goes_on, due) in zip(self._claims, self._heads, strict=True):
            heads = claim.choose(self._usable(claim, near), limit)
            if goes_on and len(heads) < claim.most:
                heads = self._choose_of_all(claim, limit)
            heads += claim.choose(self._usable(claim, due), limit)
            self._chosen += [(claim.queue.account, head.id) for head in heads]
        return sorted({key for key in self._chosen if (Task.table, *key) not in self._rows.known})

    def has_skipped(self, claims: Iterable[tuple[str, str, int]]) -> bool:
        """Whether tasks that claims could take were locked by another server.

        `claims` are (account, type, count) of all queues whose first tasks were loaded.
        """
        damaged = len(self._rows.damaged)
        plain = (
            (account, task_id)
            for account, name, count in claims
            for task_id in self._plain.get((account, name), [])[: count + damaged]
        )
        return any((Task.table, *key) not in self._rows.known for key in (*self._chosen, *plain))

    def _usable(self, claim: LimitedClaim, heads: list[Head]) -> list[Head]:
        """Those that are not known to be damaged."""
        return [head for head in heads if (Task.table, claim.queue.account, head.id) not in self._rows.damaged]

    def _choose_of_all(self, claim: LimitedClaim, limit: int) -> list[Head]:
        """The tasks to load, out of the first of each key."""
        queue = (claim.queue.account, claim.queue.type)
        sets = [""]
        if claim.capabilities:
            (listed,) = self._run((ready.ALLOWED_SETS, (*queue, claim.capabilities)))
            sets = [text(words) for (words,) in listed]
        groups, damaged = (*queue, document(sets)), len(self._rows.damaged)
        of_keys = (*groups, claim.most_of_key(limit) + damaged, document(claim.queue.full_keys(limit)))
        statements: list[Statement] = [(ready.KEYED_HEADS, of_keys)]
        if claim.capabilities:
            statements.append((ready.KEYLESS_HEADS, (*groups, claim.most + damaged)))
        with_key, *keyless = (self._usable(claim, _heads(found)) for found in self._run(*statements))
        return claim.choose(with_key, limit) + [head for found in keyless for head in found]


_decode_counts = decoder(dict[str, int])
_decode_heads = decoder(list[tuple[str, str | None, str | None]])
_decode_ids = decoder(list[str])


def _heads(found: ResultRows) -> list[Head]:
    return [
        Head(text(task_id), None if key is None else text(key), None if words is None else text(words))
        for task_id, key, words in found
    ]
