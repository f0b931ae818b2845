"""Which tasks are meant: the filter of the address, for a list, for a count, and for what is done to all of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.core import task as tasks
from holdfast.core.row import Instant
from holdfast.core.task import CLAIMED, STATES, Task
from holdfast.store.contract import Reader, TaskPath
from holdfast.transport.dashboard.failure_groups import family_of

NEWEST = "tsk_~"
"""Sorts behind every task."""
AT_ONCE = 500


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Every part of it must fit; an empty one fits all."""

    state: str = ""
    type: str = ""
    tag: str = ""
    key: str = ""
    worker: str = ""
    open: str = ""
    """`yes`: dead letters that nobody has dealt with yet."""
    reason: str = ""
    """The family of what a dead letter died of."""

    @property
    def given(self) -> dict[str, str]:
        """What stands in an address for it."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value}

    @property
    def path(self) -> TaskPath:
        """The index along which it is read."""
        return TaskPath(
            type=self.type or None,
            state=self.state or None,
            tag=self.tag or None,
            unique_key=self.key or None,
        )

    @property
    def is_counted(self) -> bool:
        """Whether the store knows how many there are without looking at them."""
        return not (self.tag or self.key or self.worker or self.open or self.reason)

    def fits(self, task: Task) -> bool:
        """Whether a task is one of them."""
        return (
            self.state in {"", task.state}
            and self.type in {"", task.type}
            and self.tag in {"", task.tag}
            and self.key in {"", task.unique_key}
            and self.worker in {"", task.worker}
            and (not self.open or (task.state == tasks.DEAD and task.resolved_at is None))
            and (not self.reason or family_of(task) == self.reason)
        )


class Found(msgspec.Struct, frozen=True):
    """Some of them, newest first."""

    tasks: list[Task]
    following: str
    """Where to look on; empty at the end."""
    now: Instant


def read(query: Mapping[str, str]) -> Wanted:
    """The filter that an address or a form tells; a state that there is not is none."""
    told = {name: query.get(name, "").strip() for name in Wanted.__struct_fields__}
    if told["state"] not in STATES:
        told["state"] = ""
    return Wanted(**told)


def look(reader: Reader, account: str, wanted: Wanted, before: str, *, limit: int, most: int) -> Found:
    """The next ones, found by looking at no more than `most`: a rare filter gets a short page and a way on."""
    found: list[Task] = []
    looked = 0
    while looked < most:
        page = reader.tasks(account, wanted.path, before, AT_ONCE)
        looked += len(page)
        for task in page:
            if wanted.fits(task):
                if len(found) == limit:
                    return Found(found, before, reader.now)
                found.append(task)
            before = task.id
        if len(page) < AT_ONCE:
            return Found(found, "", reader.now)
    return Found(found, before, reader.now)


def stood(task: Task, moment: Instant) -> bool:
    """Whether it was then as it is now, but for signs of life: what somebody counted is what is acted on."""
    since = task.claimed_at if task.state == CLAIMED else task.changed_at
    return task.created_at <= moment and since is not None and since <= moment
