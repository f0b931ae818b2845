"""Needs: the rows and counts that commands must lock and load before they can decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, compress
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.reservation.patterns import ancestors
from holdfast.core.row import Key, Row
from holdfast.core.task import CLAIMED, Task
from holdfast.core.task.capabilities import combine
from holdfast.core.task.queue import Queue, is_closed
from holdfast.core.webhooks.webhook import LimitGroup

MAX_READY = 2_000
"""A batch never loads more tasks of one queue than this."""
MAX_DEPENDENTS = 500
"""So many tasks that depend on another one are loaded at once."""
MAX_DEPENDENTS_PER_BATCH = 2_000


class Needs(msgspec.Struct, frozen=True):
    """The rows and counts that one command must lock and load."""

    rows: tuple[Key, ...] = ()
    holdings: tuple[tuple[str, str], ...] = ()
    """(account, session): the ephemeral leases and the tasks that these sessions hold."""
    ready: tuple[tuple[str, str, int], ...] = ()
    """(account, type, count): the first claimable tasks of a queue; type "" means every queue of the account."""
    requiring: tuple[tuple[str, str, str, str], ...] = ()
    """(account, type, capabilities, session): of a queue in `ready`, also the first tasks that require some of these
    capabilities and of those of the session, and no others."""
    queues: tuple[tuple[str, str], ...] = ()
    """(account, type): the settings of a queue, locked, and how many of its tasks run; type "" means every queue of the
    account that has settings."""
    queues_of: tuple[tuple[str, str], ...] = ()
    """(account, task): the same for the queues of these tasks."""
    changed_queues: tuple[tuple[str, str], ...] = ()
    """(account, type): queues in `queues` whose settings this command may change."""
    concurrency_limits: tuple[tuple[str, str, int], ...] = ()
    """(account, type, limit): the limit for each concurrency key that this command may set for a queue in `queues`."""
    spare: int = 0
    """How many ready tasks this command may take by id: claims in the same batch load that many more."""
    hiding: tuple[tuple[str, str, int], ...] = ()
    """(account, type, count): claims of this queue in the same batch load so many more, because tasks that nobody may
    claim stand before others; type "" means every queue of the account."""
    unique_keys: tuple[tuple[str, str], ...] = ()
    """(account, unique key): the live tasks under these keys."""
    dependents: tuple[tuple[str, str], ...] = ()
    """(account, task): live tasks that depend on these, the first ones after `Task.releasing`, if the task itself is in
    `rows`. Dependents that another transaction has locked are listed, but not loaded."""
    same_key_as: tuple[tuple[str, str], ...] = ()
    """(account, task): the live tasks under the unique keys of these tasks."""
    lock_counts: tuple[tuple[str, str], ...] = ()
    """(account, principal): how many live locks each has, exact until the transaction ends."""
    election_counts: tuple[str, ...] = ()
    """Accounts: how many elections are live in each."""
    webhook_counts: tuple[LimitGroup, ...] = ()
    """How many webhooks count toward each of these limits, exact until the transaction ends."""
    paths: tuple[tuple[str, str, str, bool], ...] = ()
    """(account, space, prefix, below): the open reservations with a pattern whose prefix is this one or above it; with
    `below` also those with one below it. The space is locked: nothing is reserved in it until the transaction ends."""
    answers: tuple[tuple[str, str], ...] = ()
    """(account, Idempotency-Key): the answers remembered under these keys."""
    usage: tuple[str, ...] = ()
    """Accounts: what each has used of its plan, exact until the transaction ends."""

    @classmethod
    def joined(cls, each: Iterable[Needs]) -> Needs:
        """The needs of several commands that are decided as one."""
        found = list(each)
        joined = {name: tuple(_all_of(name, found)) for name in (*_SETS, "ready")}
        return cls(spare=sum(needs.spare for needs in found), **joined)


class AllNeeds(msgspec.Struct):
    """The needs of a whole batch, without duplicates, each sorted."""

    rows: list[Key] = []
    holdings: list[tuple[str, str]] = []
    ready: list[tuple[str, str, int]] = []
    requiring: list[tuple[str, str, str, str, int]] = []
    queues: list[tuple[str, str]] = []
    queues_of: list[tuple[str, str]] = []
    changed_queues: list[tuple[str, str]] = []
    concurrency_limits: list[tuple[str, str, int]] = []
    hiding: list[tuple[str, str, int]] = []
    unique_keys: list[tuple[str, str]] = []
    dependents: list[tuple[str, str]] = []
    same_key_as: list[tuple[str, str]] = []
    lock_counts: list[tuple[str, str]] = []
    election_counts: list[str] = []
    webhook_counts: list[LimitGroup] = []
    paths: list[tuple[str, str, str, bool]] = []
    answers: list[tuple[str, str]] = []
    usage: list[str] = []
    spare: int = 0
    """How many ready tasks commands of the batch may take by id: `ready` and `requiring` count them already."""
    has_only_keys: bool = False
    """Whether all it needs is in `rows` and `answers`: so it is for most batches."""

    def split_accounts(self, queues: Iterable[tuple[str, str]]) -> list[str]:
        """The accounts with claims of any type and with these queues that have settings: (account, type).

        There, claims of any type load tasks of each type: a queue may be closed, or a command of the batch may close
        it, and its tasks must not hide those of others.
        """
        limited = {account for account, _ in queues}
        return sorted({account for account, task_type, _ in self.ready if not task_type and account in limited})

    def limits_to_set(self, queue: Queue) -> list[int]:
        """The limits for each concurrency key that commands of the batch may set for a queue."""
        own = (queue.account, queue.id)
        return [limit for account, name, limit in self.concurrency_limits if (account, name) == own]

    def with_claims(self, *, typed: bool) -> AllNeeds:
        """The needs with only those claims that name a type, or with only those of any type."""
        claims = (self.ready, self.requiring)
        ready, requiring = ([claim for claim in found if bool(claim[1]) == typed] for found in claims)
        return replace(self, ready=ready, requiring=requiring)

    def without_queues(self, queues: set[tuple[str, str]]) -> AllNeeds:
        """The needs without the claims that name one of these queues."""
        ready = [claim for claim in self.ready if claim[:2] not in queues]
        return replace(self, ready=ready, requiring=[claim for claim in self.requiring if claim[:2] not in queues])

    def closed_queues(
        self, queues: Iterable[Queue], running: Mapping[tuple[str, str], int], loaded: Iterable[Row | None]
    ) -> set[tuple[str, str]]:
        """Those of the queues that stay closed whatever the commands of the batch do.

        A command may change the settings of a queue or end tasks that run; the batch has loaded these.
        """
        held = (row for row in loaded if isinstance(row, Task) and row.state == CLAIMED)
        ending = Counter((row.account, row.type) for row in held)
        names = {(queue.account, queue.id): queue for queue in queues}
        closed = {name for name, queue in names.items() if is_closed(queue, running[name] - ending[name])}
        return closed.difference(self.changed_queues)

    def in_open_queues(self, closed: set[tuple[str, str]], types: dict[str, list[str]]) -> AllNeeds:
        """The needs with claims of any type as claims of each type whose queue is open.

        `closed` are (account, type), `types` the types with claimable tasks, by account. A claim that names a closed
        queue stays as it is.
        """

        def split(queues: list[Any]) -> list[Any]:
            return [
                (account, name, *more)
                for account, task_type, *more in queues
                for name in ([task_type] if task_type else types.get(account, [""]))
                if task_type or (account, name) not in closed
            ]

        return replace(self, ready=split(self.ready), requiring=split(self.requiring)) if closed or types else self

    def capable_claims(self, capabilities_of: Callable[[str, str], str | None]) -> list[tuple[str, str, str, int]]:
        """(account, type, capabilities, count) of `requiring`, with the capabilities of each session added."""
        claims = {
            (account, task_type, combine(own, capabilities_of(account, session))): count
            for account, task_type, own, session, count in self.requiring
        }
        return [(*claim, count) for claim, count in sorted(claims.items()) if claim[-1]]

    def spaces(self) -> list[tuple[str, str]]:
        """(account, space) of all paths."""
        return sorted({(account, space) for account, space, _, _ in self.paths})

    def covering_prefixes(self) -> list[tuple[str, str, str]]:
        """(account, space, prefix) of the prefixes of all paths and of those above them."""
        return sorted(
            {(account, space, above) for account, space, prefix, _ in self.paths for above in ancestors(prefix)}
        )

    def prefixes_below(self) -> list[tuple[str, str, str, str | None]]:
        """(account, space, first, end): the ranges, bytewise, of prefixes below those of the paths that ask for it."""
        below = {(account, space, prefix) for account, space, prefix, below in self.paths if below}
        return [(account, space, *range_below(prefix)) for account, space, prefix in sorted(below)]

    @classmethod
    def of(cls, each: Iterable[Needs]) -> AllNeeds:
        """Join the needs of many commands. Every batch takes its locks in this order, so none can deadlock."""
        gathered: dict[str, set[Any]] = {}
        ready: dict[tuple[str, str], int] = {}
        spare = 0
        for needs in each:  # most commands have few of them
            spare += needs.spare
            sets = _get_sets(needs)
            for name, items in compress(zip(_SETS, sets, strict=True), sets):
                gathered.setdefault(name, set()).update(items)
            for account, task_type, count in needs.ready:
                ready[account, task_type] = ready.get((account, task_type), 0) + count
        if not ready:
            return cls(**_sorted(gathered), has_only_keys=_BY_KEY.issuperset(gathered))
        ready = {queue: count + _count_overlapping(ready, *queue) for queue, count in ready.items()}
        hiding = gathered.get("hiding", ())
        most = {queue: min(count + spare + count_hiding(hiding, *queue), MAX_READY) for queue, count in ready.items()}
        gathered["ready"] = {(*queue, count) for queue, count in most.items()}
        requiring = gathered.get("requiring", ())
        gathered["requiring"] = {(*claim, most[claim[0], claim[1]]) for claim in requiring}
        return cls(**_sorted(gathered), spare=spare)


def dependents_of_each(tasks: int) -> int:
    """How many dependents of each of so many tasks are loaded."""
    return max(1, min(MAX_DEPENDENTS, MAX_DEPENDENTS_PER_BATCH // max(tasks, 1)))


def count_hiding(hiding: Iterable[tuple[str, str, int]], account: str, task_type: str) -> int:
    """How many tasks that nobody may claim stand before others of a queue; type "" is every queue of the account."""
    found = (
        count for other, name, count in hiding if other == account and (name == task_type or "" in {name, task_type})
    )
    return max(found, default=0)


def range_below(prefix: str) -> tuple[str, str | None]:
    """The first prefix, bytewise, below a prefix, and the first after it that is not below; None for no end."""
    return (f"{prefix}/", f"{prefix}0") if prefix else ("", None)


def _count_overlapping(ready: dict[tuple[str, str], int], account: str, task_type: str) -> int:
    """How many tasks of a queue other claims of the batch may take: claims of any type, or of one type for type ""."""
    if task_type:
        return ready.get((account, ""), 0)
    return sum(count for (other, named), count in ready.items() if other == account and named)


def _sorted(gathered: dict[str, set[Any]]) -> dict[str, Any]:
    return {name: sorted(items) for name, items in gathered.items()}


def _all_of(name: str, each: list[Needs]) -> Iterable[Any]:
    return chain.from_iterable(map(attrgetter(name), each))


_SETS = tuple(name for name in Needs.__struct_fields__ if name not in {"ready", "spare"})
"""The needs that a batch joins as sets."""
_get_sets = attrgetter(*_SETS)
_BY_KEY = frozenset({"rows", "answers"})
