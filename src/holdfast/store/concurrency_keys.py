"""Queues with a limit for each concurrency key: which of their tasks a batch must load for its claims.

Tasks of a key that is at its limit must not hide tasks of other keys, and a command of the same batch may end a task
or reach a limit. So the batch assumes that every running task that it has loaded ends: of each key it loads the tasks
that could be claimed then, and in all as many more as there are such tasks. Of each key it loads as many more as tasks
may leave the queue otherwise. Every claim of the batch then finds its task among those that were loaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from holdfast.core.row import Key, Row
from holdfast.core.task import CLAIMED, Task
from holdfast.core.task.capabilities import may_take
from holdfast.core.task.queue import Head, Queue, choose
from holdfast.store.needs import AllNeeds, count_hiding

NEAR = 100
"""How many tasks at the head of a queue are looked through before its sets of required words are listed."""
WINDOW = 2_000
"""How many tasks at the head of a queue are looked through for keys that have room before its keys are listed."""


class LimitedQueue(msgspec.Struct):
    """A queue with a limit for each key, as it is when a batch begins."""

    account: str
    type: str
    limits: list[int]
    """Its limit for each key, and those that commands of the batch may set."""
    running: Mapping[str, int] = {}
    """By key: how many tasks are claimed."""
    ending: Mapping[str, int] = {}
    """By key: how many of these the batch has loaded, and may end."""

    def room(self, key: str, limit: int) -> int:
        """How many tasks of a key the batch could claim."""
        return limit - self.running.get(key, 0) + self.ending.get(key, 0)

    def full_keys(self, limit: int) -> list[str]:
        """The keys of which the batch cannot claim any task."""
        full = [key for key, running in self.running.items() if running >= limit]
        return [key for key in full if self.room(key, limit) <= 0] if self.ending else full


class LimitedClaim(msgspec.Struct):
    """The claims of a batch from one queue with a limit for each key, and with the same capabilities."""

    queue: LimitedQueue
    capabilities: str
    """Empty for tasks that require nothing; else only those are meant that require some of these."""
    count: int
    spare: int = 0
    """How many tasks may leave the queue otherwise: any of them may be the one that was loaded of a key."""

    @property
    def most(self) -> int:
        """How many tasks are loaded."""
        return self.count + sum(self.queue.ending.values())

    def most_of_key(self, limit: int) -> int:
        """How many tasks of one key are loaded at most."""
        return min(self.most, limit + max(self.queue.ending.values(), default=0) + self.spare)

    def enough(self, damaged: int, *, only_allowed: bool) -> int:
        """How many tasks of keys that are not full are read, to choose out of them those that are loaded.

        Of keys without a task that may end the first one always has room. Some more are read where several are wanted,
        which may be of one key, or where tasks are among them that the claim may not take.
        """
        return damaged + (1 if self.most == 1 and only_allowed else self.most + NEAR)

    def may_take(self, requires: str | None) -> bool:
        """Whether a task that requires this is meant."""
        return bool(requires) == bool(self.capabilities) and may_take(self.capabilities, requires)

    def choose(self, heads: Iterable[Head], limit: int) -> list[Head]:
        """The tasks to load out of those of the queue, in order."""
        able = (head for head in heads if self.may_take(head.requires))
        return choose(able, lambda key: self._most_of(key, limit), self.most)

    def _most_of(self, key: str, limit: int) -> int:
        """How many tasks of this key are loaded at most."""
        room = self.queue.room(key, limit)
        return room + self.spare if room > 0 else 0


def limited_queues(queues: Iterable[Queue], needs: AllNeeds) -> list[LimitedQueue]:
    """The queues with a limit for each key, and those that may get one in this batch."""
    found = []
    for queue in queues:
        own = () if queue.max_running_per_key is None else (queue.max_running_per_key,)
        limits = {*own, *needs.limits_to_set(queue)}
        if limits:
            found.append(LimitedQueue(queue.account, queue.id, sorted(limits)))
    return sorted(found, key=lambda queue: (queue.account, queue.type))


def set_ending(queue: LimitedQueue, loaded: Mapping[Key, Row]) -> None:
    """Give a queue the numbers of tasks, by key, that run and that the batch has loaded."""
    held = (row for row in loaded.values() if isinstance(row, Task) and row.state == CLAIMED)
    ours = (row for row in held if (row.account, row.type) == (queue.account, queue.type))
    queue.ending = Counter(row.concurrency_key for row in ours if row.concurrency_key is not None)


def limited_claims(
    needs: AllNeeds, queues: Iterable[LimitedQueue], capabilities_of: Callable[[str, str], str | None]
) -> list[LimitedClaim]:
    """The claims of a batch from these queues, also those of any type."""
    claims = [(account, name, "", count) for account, name, count in needs.ready]
    claims += needs.capable_claims(capabilities_of)
    found: dict[tuple[str, str, str], LimitedClaim] = {}
    for account, name, capabilities, count in claims:
        for queue in queues:
            if queue.account == account and name in {"", queue.type}:
                spare = needs.spare + count_hiding(needs.hiding, account, queue.type)
                fresh = LimitedClaim(queue, capabilities, count, spare)
                claim = found.setdefault((account, queue.type, capabilities), fresh)
                claim.count = max(claim.count, count)
    return [*found.values()]


def running_by_key(queues: Iterable[LimitedQueue]) -> dict[tuple[str, str], dict[str, int]]:
    """(account, type): how many tasks run, by key."""
    return {(queue.account, queue.type): dict(queue.running) for queue in queues}
