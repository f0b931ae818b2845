"""Task cycles through the engine, without HTTP: concurrent callers create, claim and complete tasks."""

from __future__ import annotations

import threading
import time
from typing import Any

from bench.engine import BY, CAUSE
from bench.scripts import PAYLOAD
from holdfast.core.task import Task
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.tasks.claiming import Claimed, ClaimTasks
from holdfast.engine.verbs.tasks.creating import Created, CreateTask
from holdfast.engine.verbs.tasks.holding import CompleteTask
from holdfast.store.contract import Store
from holdfast.transport.ids import Ids


class Workers:
    """Concurrent callers, as the sink of their own commands: an answer starts the next step of its caller."""

    def __init__(self, engine: Engine, seconds: float) -> None:
        self._engine = engine
        self._ids = Ids()
        self._until = time.perf_counter() + seconds
        self._in_flight = 0
        self.cycles = 0
        self.done = threading.Event()

    def create(self) -> None:
        self._in_flight += 1
        task = Task("default", "tsk_" + self._ids.ulid(), type="bench", payload=PAYLOAD)
        self._engine.submit(CreateTask(account="default", cause=CAUSE, task=task), self)

    def deliver(self, replies: list[tuple[Any, Any]]) -> None:
        is_over = time.perf_counter() >= self._until
        for _, outcome in replies:
            assert not isinstance(outcome, BaseException), outcome
            self._in_flight -= 1
            if isinstance(outcome, Created):
                self._in_flight += 1
                claim = ClaimTasks(
                    account="default", cause=CAUSE, by=BY, worker="w", seed=self._ids.draw(), types=("bench",)
                )
                self._engine.submit(claim, self)
            elif isinstance(outcome, Claimed):
                self._in_flight += 1
                (taken,) = outcome.taken
                complete = CompleteTask(
                    account="default", cause=CAUSE, task_id=taken.task.id, lease_id=taken.lease_id, result='{"ok":true}'
                )
                self._engine.submit(complete, self)
            else:
                self.cycles += 1
                if not is_over:
                    self.create()
        if is_over and self._in_flight == 0:
            self.done.set()


def cycles_per_second(store: Store, *, callers: int, seconds: float) -> float:
    """Durable create-claim-complete cycles per second."""
    engine = Engine(store)
    engine.start()
    workers = Workers(engine, seconds)
    started = time.perf_counter()
    for _ in range(callers):
        workers.create()
    assert workers.done.wait(seconds + 30), "the workers did not finish"
    rate = workers.cycles / (time.perf_counter() - started)
    engine.stop()
    return rate
