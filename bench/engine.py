"""Claims through the engine, without HTTP: each of several callers always has one command in flight."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from typing import Any

from holdfast.core.event import Cause
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND
from holdfast.engine.backlog import MAX_BATCH
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.job_claims import ClaimJob
from holdfast.store.contract import Store

CAUSE = Cause("bench", "")
BY = Principal("default", str(uuid.uuid4()), version=1, name="bench")


class Callers:
    """Concurrent callers, as the sink of their own commands: an answer makes its caller claim again."""

    def __init__(self, engine: Engine, seconds: float) -> None:
        self._engine = engine
        self._until = time.perf_counter() + seconds
        self._names = itertools.count()
        self._run = uuid.uuid4().hex[:8]
        self._in_flight = 0
        self.answered = 0
        self.done = threading.Event()

    def claim(self) -> None:
        self._in_flight += 1
        command = ClaimJob(
            account="default", cause=CAUSE, name=f"{self._run}/{next(self._names)}", by=BY, owner="bench",
            lease_id=str(uuid.uuid4()), holder=str(uuid.uuid4()), ttl=60 * SECOND,
        )  # fmt: skip
        self._engine.submit(command, self)

    def deliver(self, replies: list[tuple[Any, Any]]) -> None:
        for _, outcome in replies:
            assert not isinstance(outcome, BaseException), outcome
        self.answered += len(replies)
        self._in_flight -= len(replies)
        if time.perf_counter() < self._until:
            for _ in replies:
                self.claim()
        elif self._in_flight == 0:
            self.done.set()


def claims_per_second(store: Store, *, callers: int, seconds: float, max_batch: int = MAX_BATCH) -> float:
    """Durable claims per second."""
    engine = Engine(store, max_batch=max_batch)
    engine.start()
    clients = Callers(engine, seconds)
    started = time.perf_counter()
    for _ in range(callers):
        clients.claim()
    clients.done.wait()
    rate = clients.answered / (time.perf_counter() - started)
    engine.stop()
    return rate
