"""Work that no live worker can take: ready tasks whose type or required words no worker has.

Workers need not register, so who is alive is known only from what the server sees: open sessions, callers that wait for
tasks, and holders of tasks. A worker that asks now and then without waiting is seen only while it holds a task; it
would have taken what it can within a minute, so younger work is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.core.row import SECOND, Instant
from holdfast.core.task.capabilities import may_take

SETTLED_AFTER = 60 * SECOND
"""How long work must have been ready: by then workers that ask without waiting have had their turn."""


class ReadyWork(msgspec.Struct, frozen=True):
    """The ready tasks of one type that require the same words."""

    type: str
    requires: str
    """Sorted and separated by commas; empty for none."""
    since: Instant
    """When the first of them became ready."""
    count: int


class LiveWorker(msgspec.Struct, frozen=True):
    """What is known of a worker: which tasks it takes."""

    type: str
    """The task type that it takes; empty if it may take any."""
    capabilities: str = ""


def without_worker(work: Iterable[ReadyWork], workers: Iterable[LiveWorker], now: Instant) -> list[ReadyWork]:
    """The work that has been ready for a minute and that none of these workers can take, longest waiting first."""
    known = set(workers)
    found = [
        each
        for each in work
        if now - each.since >= SETTLED_AFTER and not any(can_take(worker, each) for worker in known)
    ]
    return sorted(found, key=lambda each: (each.since, each.type, each.requires))


def can_take(worker: LiveWorker, work: ReadyWork) -> bool:
    """Whether a worker takes this type and has all required words."""
    return worker.type in {"", work.type} and may_take(worker.capabilities, work.requires)
