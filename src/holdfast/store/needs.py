"""Needs: the rows and counts that commands must lock and load before they can decide."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec

from holdfast.core.reservation.patterns import ancestors
from holdfast.core.row import Key
from holdfast.core.webhooks.webhook import LimitGroup

MAX_READY = 2_000
"""A batch never loads more tasks of one queue than this."""


class Needs(msgspec.Struct, frozen=True):
    """The rows and counts that one command must lock and load."""

    rows: tuple[Key, ...] = ()
    holdings: tuple[tuple[str, str], ...] = ()
    """(account, session): the ephemeral leases and the tasks that these sessions hold."""
    ready: tuple[tuple[str, str, int], ...] = ()
    """(account, type, count): the first claimable tasks of a queue; type "" means every queue of the account."""
    spare: int = 0
    """How many ready tasks this command may take by id: claims in the same batch load that many more."""
    unique_keys: tuple[tuple[str, str], ...] = ()
    """(account, unique key): the live tasks under these keys."""
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

    rows: list[Key]
    holdings: list[tuple[str, str]]
    ready: list[tuple[str, str, int]]
    unique_keys: list[tuple[str, str]]
    same_key_as: list[tuple[str, str]]
    lock_counts: list[tuple[str, str]]
    election_counts: list[str]
    webhook_counts: list[LimitGroup]
    paths: list[tuple[str, str, str, bool]]
    answers: list[tuple[str, str]]
    usage: list[str]

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
        found = list(each)
        gathered = {name: set(_all_of(name, found)) for name in _SETS}
        ready: dict[tuple[str, str], int] = {}
        for account, task_type, count in _all_of("ready", found):
            ready[account, task_type] = ready.get((account, task_type), 0) + count
        spare = sum(needs.spare for needs in found)
        ready = {queue: count + _count_overlapping(ready, *queue) for queue, count in ready.items()}
        gathered["ready"] = {(*queue, min(count + spare, MAX_READY)) for queue, count in ready.items()}
        return cls(**{name: sorted(items) for name, items in gathered.items()})


def range_below(prefix: str) -> tuple[str, str | None]:
    """The first prefix, bytewise, below a prefix, and the first after it that is not below; None for no end."""
    return (f"{prefix}/", f"{prefix}0") if prefix else ("", None)


def _count_overlapping(ready: dict[tuple[str, str], int], account: str, task_type: str) -> int:
    """How many tasks of a queue other claims of the batch may take: claims of any type, or of one type for type ""."""
    if task_type:
        return ready.get((account, ""), 0)
    return sum(count for (other, named), count in ready.items() if other == account and named)


def _all_of(name: str, each: list[Needs]) -> Iterable[Any]:
    return chain.from_iterable(map(attrgetter(name), each))


_SETS = tuple(name for name in Needs.__struct_fields__ if name not in {"ready", "spare"})
"""The needs that a batch joins as sets."""
