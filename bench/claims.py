"""Latency of a claim in a full store: `python -m bench.claims [sqlite|postgres] [--rows N]`.

One caller claims from queues of ready tasks: from a plain one; from one whose tasks require 100 sets of capabilities,
with few of these and with all; from one with a limit; from three with a limit for each of 1,000 concurrency keys, where
50 tasks of full keys stand first, 950 of 50 keys, or 500 of 500 keys; and from all queues while one is full. Each
figure is the median of the claims of one kind, made in turn with the others, beside that of the plain queue in the same
run. The exit status is 1 if one of those is over the limit that are checked: not the last two.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.engine import BY, CAUSE
from bench.page import machine, table
from bench.seeding import connection, copy
from bench.stores import new_folder, new_stores
from holdfast.core.row import SECOND
from holdfast.core.task import Task
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.queues import ChangeQueue, OpenQueue
from holdfast.engine.verbs.tasks.claiming import Claimed, ClaimTasks
from holdfast.engine.verbs.tasks.creating import CreateTask
from holdfast.engine.verbs.tasks.holding import CompleteTask
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore

SETS, KEYS = 100, 1_000
KEYED = {"keyed": (2, 50), "crowded": (20, 50), "busy": (2, 500)}
"""By queue with keys: so many tasks in a row have the same one, and so many of the keys are full."""
TYPES = ("plain", "requiring", "limited", *KEYED, "full")
BASE: dict[str, Any] = {"account": "default", "cause": CAUSE}
ALL = ",".join(f"word{SETS + number}" for number in range(SETS))
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"types": ("plain",)},
    "3 of 100 sets": {"types": ("requiring",), "capabilities": "word107,word142,word177"},
    "all of 100 sets": {"types": ("requiring",), "capabilities": ALL},
    "a limited queue": {"types": ("limited",)},
    "1,000 keys, most with room": {"types": ("keyed",)},
    "950 tasks of full keys first": {"types": ("crowded",)},
    "500 of 1,000 keys are full": {"types": ("busy",)},
    "any queue, one is full": {"types": ()},
}
UNCHECKED = ("500 of 1,000 keys are full", "any queue, one is full")
"""The cost of these grows with the number of full keys, and of queues with settings; it is only shown."""
LIMIT = 1.5
"""How many times as long as a claim of the plain queue the others may take."""


def main(arguments: list[str] | None = None) -> None:
    """Fill a store, measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.claims")
    parser.add_argument("store", nargs="?", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--claims", type=int, default=300)
    options = parser.parse_args(arguments)
    with new_folder() as folder, new_stores(options.store, folder) as new_store:
        url = new_store()
        fill(url, options.rows)
        medians = measure(url, options.claims)
    plain = medians["plain"]
    over = over_limit(medians)
    rows = [
        (kind, f"{median * 1e6:,.0f}", f"{median / plain:.2f}{' (over the limit)' if kind in over else ''}")
        for kind, median in medians.items()
    ]
    print(f"{machine()}; {options.store}; {options.rows:,} ready tasks; median of {options.claims} claims.\n")
    print(table(("claim from", "µs", "times plain"), rows))
    sys.exit(1 if over else 0)


def over_limit(medians: dict[str, float]) -> dict[str, float]:
    """How many times as long as from the plain queue those claims took that are checked and over the limit."""
    ratios = {kind: median / medians["plain"] for kind, median in medians.items() if kind not in UNCHECKED}
    return {kind: ratio for kind, ratio in ratios.items() if ratio > LIMIT}


def fill(url: str, rows: int) -> None:
    """As many tasks are in each queue."""
    with running(url) as engine:
        for task_type in TYPES:
            engine.call(CreateTask(**BASE, task=Task("default", f"tsk_{task_type}", type=task_type, payload="{}")))
        for task_type, most in (("limited", 1_000), ("full", 1)):
            engine.call(OpenQueue(**BASE, type=task_type))
            engine.call(ChangeQueue(**BASE, type=task_type, changes={"max_running": most}))
        for task_type in KEYED:
            engine.call(OpenQueue(**BASE, type=task_type))
            engine.call(ChangeQueue(**BASE, type=task_type, changes={"max_running_per_key": 1}))
        engine.call(claim("full", types=("full",)))
    with connection(url) as (run, columns_of):
        for task_type in TYPES:
            changes = {"id": f"'tsk_{task_type}' || n", "place": "place + n"}
            changes |= {"state": "'pending'", "ready": "true", "proof": "NULL", "expires_at": "NULL"}
            if task_type == "requiring":
                changes["requires"] = f"'word' || ({SETS} + n % {SETS})"
            if task_type in KEYED:
                changes["concurrency_key"] = f"'key' || ({KEYS} + n / {KEYED[task_type][0]} % {KEYS})"
            copy(run, columns_of("tasks"), "tasks", f"id = 'tsk_{task_type}'", changes, rows // len(TYPES))
        run(f"UPDATE task_counts SET total = total + {rows // len(TYPES)} WHERE state = 'pending'")
    with running(url) as engine:  # the other tasks of the keys that are full then stay first in the queue
        for task_type, (_, full) in KEYED.items():
            engine.call(claim(task_type, types=(task_type,), limit=full + 1))  # one task has no key


@contextmanager
def running(url: str) -> Iterator[Engine]:
    """An engine on a store inside the block."""
    is_shared = url.startswith("postgresql")
    store = PostgresStore(url) if is_shared else SqliteStore(Path(url.removeprefix("sqlite:///")))
    store.open()
    engine = Engine(store)
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()
        store.close()


def claim(seed: str, **more: Any) -> ClaimTasks:
    """A claim of one task."""
    return ClaimTasks(**BASE, by=BY, worker="bench", seed=seed.encode(), lease=3600 * SECOND, **more)


def measure(url: str, claims: int) -> dict[str, float]:
    """The median duration of each kind of claim; every task is completed at once."""
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with running(url) as engine:
        for _ in range(claims):
            for kind, more in KINDS.items():
                command = claim(uuid.uuid4().hex, **more)
                began = time.perf_counter()
                got = engine.call(command)
                times[kind].append(time.perf_counter() - began)
                assert isinstance(got, Claimed), kind
                done = got.taken[0]
                engine.call(CompleteTask(**BASE, task_id=done.task.id, lease_id=done.lease_id))
    return {kind: statistics.median(each) for kind, each in times.items()}


if __name__ == "__main__":
    main()
