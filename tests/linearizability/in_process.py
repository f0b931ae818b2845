"""Runs on one store inside this process, with a driven clock and commits that fail."""

from __future__ import annotations

import json
import random
from typing import Any

from holdfast.core.event import Event
from holdfast.core.row import SECOND
from holdfast.engine.engine import Engine
from tests.linearizability.clients.engine_run import EngineRun
from tests.linearizability.clients.store_time import DrivenTime, MeasuredTime
from tests.linearizability.faults import UnreliableStore, passing_time
from tests.linearizability.history import History
from tests.log_entry import LogEntry
from tests.support import DrivenClock, every, stop_in_time

TTL = 10 * SECOND
REAL_TTL = SECOND // 4


def record(
    stores: list[Any], clock: DrivenClock | None, *, seed: int, calls: int, fault_rate: float = 0.02, **more: Any
) -> History:
    """Run workers against one engine on each of these stores, which share their rows; the history of the run.

    Without a clock to drive, the leases last for a quarter of a second of the store's own clock.
    """
    rng = random.Random(seed)
    unreliable = [
        UnreliableStore(store, random.Random(f"{seed} {place}"), fault_rate) for place, store in enumerate(stores)
    ]
    engines = [Engine(store) for store in unreliable]
    for engine in engines:
        engine.start()
    if clock is None:
        run = EngineRun(engines, MeasuredTime(lambda: time_of(stores[0])), rng, f"seed-{seed}", REAL_TTL, **more)
    else:
        between = passing_time(clock, rng)
        run = EngineRun(engines, DrivenTime(clock), rng, f"seed-{seed}", TTL, between=between, **more)
    try:
        run.run(calls)
    finally:
        for engine in engines:
            stop_in_time(engine)
    return History(run.calls, log_of(stores[0]))


def time_of(store: Any) -> int:
    """The store's time."""
    with store.read() as reader:
        return int(reader.now)


def log_of(store: Any) -> list[LogEntry]:
    """The whole log of the workers' account."""
    return [
        LogEntry(each.seq, each.subject, each.version, each.kind, each.at, each.request_id, json.loads(each.data))
        for each in every(store, Event)
    ]
