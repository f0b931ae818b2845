"""A factory under one seed: tasks come in; workers claim, finish, fail, crash, oversleep and say things twice."""

from __future__ import annotations

import random
from typing import Any

from holdfast.core.errors import Conflict
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import CANCELLED, CLAIMED, FINAL_STATES, Task
from holdfast.engine.expiry import UpdateDueTask
from holdfast.engine.verbs.tasks.base import TaskOutcome
from holdfast.engine.verbs.tasks.claiming import Claimed, Empty
from holdfast.engine.verbs.tasks.creating import Created
from holdfast.engine.verbs.tasks.ending import CancelTask, RequeueTask
from holdfast.engine.verbs.tasks.holding import HandBackTask, UndeliverTask
from holdfast.store.memory.store import MemoryStore
from tests.simulation.inspector import Inspector
from tests.support import DrivenClock, check_log, every, transact
from tests.task_commands import (
    BASE,
    beat,
    cancel,
    complete,
    create,
    fail,
    hand_back,
    requeue,
    take,
    take_this,
    undeliver,
)

TYPES = ("cut", "weld")
LEASE = 10 * SECOND


class Worker:
    """Does one thing a turn. It may sleep through its lease and act all the same, forget all, or say a thing twice."""

    def __init__(self, number: int, factory: Factory) -> None:
        self.number = number
        self.factory = factory
        self.rng = factory.random
        self.held: dict[str, str] = {}
        self.last_words: Any = None
        self.sleeps_until: Instant = 0

    def turn(self, *, faults: bool) -> Any:
        if self.sleeps_until > self.factory.clock.now:
            return None
        fate = self.rng.random() if faults else 1.0
        if fate < 0.05:
            self.held = {}  # crash
            return None
        if fate < 0.12:
            self.sleeps_until = self.factory.clock.now + self.rng.randrange(2 * LEASE)
            return None
        if fate < 0.2 and self.last_words is not None:
            return self.last_words  # their answer was lost on the way
        if not self.held or self.rng.random() < 0.2:
            return self.claim()
        self.last_words = self.work(faults=faults)
        return self.last_words

    def claim(self) -> Any:
        types = self.rng.choice([("cut",), ("weld",), TYPES, ()])
        return take(*types, seed=self.factory.seed(), limit=self.rng.randint(1, 3), worker=f"w{self.number}")

    def work(self, *, faults: bool) -> Any:
        task_id = self.rng.choice(sorted(self.held))
        mine = {"task_id": task_id, "lease_id": self.held[task_id]}
        kind = self.rng.random() if faults else 0.0
        if kind < 0.45:
            return complete(**mine)
        if kind < 0.6:
            return fail(**mine, after=self.rng.choice([None, SECOND]), permanent=self.rng.random() < 0.1)
        if kind < 0.7:
            return hand_back(**mine)
        return undeliver(**mine) if kind < 0.75 else beat(**mine)

    def hear(self, command: Any, outcome: Any) -> None:
        inspector, now = self.factory.inspector, self.factory.clock.now
        if isinstance(outcome, TaskOutcome):
            first_time = (type(command).__name__, command.lease_id) not in inspector.said
            inspector.acted(type(command).__name__, outcome.task, command.lease_id, now)
            if first_time and isinstance(command, HandBackTask | UndeliverTask):
                inspector.given_back(outcome.task)
            if outcome.task.state != CLAIMED:
                self.held.pop(command.task_id, None)
        elif isinstance(outcome, Claimed):
            self.held |= {taken.task.id: taken.lease_id for taken in outcome.taken}
        elif isinstance(outcome, Conflict):
            inspector.refused(command.task_id, command.lease_id, now)
            if self.held.get(command.task_id) == command.lease_id:
                del self.held[command.task_id]
        else:
            assert isinstance(outcome, Empty), f"nobody expected {outcome!r}"


class Factory:
    """Everything of one run, from one seed."""

    def __init__(self, seed: int, workers: int = 4) -> None:
        self.random = random.Random(seed)
        self.clock = DrivenClock()
        self.store = MemoryStore(self.clock)
        self.inspector = Inspector()
        self.workers = [Worker(number, self) for number in range(workers)]
        self._made = 0
        self._seeds = 0

    def run(self, steps: int = 60) -> None:
        """Trouble first; when it has stopped all that is left must be finished in a bounded time."""
        for _ in range(steps):
            self.step(faults=True)
        for worker in self.workers:
            worker.held, worker.sleeps_until = {}, 0
        for _ in range(200):
            self.step(faults=False)
            if all(task.state in FINAL_STATES for task in every(self.store, Task)):
                break
        self.inspector.settle_accounts(every(self.store, Task))
        check_log(self.store)

    def step(self, *, faults: bool) -> None:
        """Some time, then one batch of whoever has something to do."""
        self._pass_time()
        batch: list[tuple[Worker | None, Any]] = []
        for worker in self.random.sample(self.workers, self.random.randint(1, len(self.workers))):
            command = worker.turn(faults=faults)
            if command is not None:
                batch.append((worker, command))
        batch += [(None, command) for command in (*self._others(faults=faults), *self._sweep(faults=faults))]
        self.random.shuffle(batch)
        if not batch:
            return
        outcomes = transact(self.store, *(command for _, command in batch))
        for (who, command), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Claimed):
                for taken in outcome.taken:
                    self.inspector.granted(taken, self.clock.now)
            if who is not None:
                who.hear(command, outcome)
            else:
                self._hear(command, outcome)

    def seed(self) -> str:
        """Chance for lease ids, never the same."""
        self._seeds += 1
        return f"seed-{self._seeds}"

    def _others(self, *, faults: bool) -> list[Any]:
        """Those who make tasks, and those who meddle."""
        if not faults:
            return []
        commands = [self._new() for _ in range(self.random.choice([0, 0, 1, 2]))]
        known = sorted(self.inspector.limits)
        if known and self.random.random() < 0.1:
            commands.append(cancel(self.random.choice(known), self.random.choice(["pending", "request", "force"])))
        if known and self.random.random() < 0.3:
            commands.append(requeue(self.random.choice(known)))
        if known and self.random.random() < 0.1:  # somebody who takes a task and is never heard of again
            commands.append(take_this(self.random.choice(known), seed=self.seed()))
        return commands

    def _new(self) -> Any:
        self._made += 1
        due = self.clock.now + self.random.randint(1, LEASE) if self.random.random() < 0.2 else None
        return create(
            f"t{self._made:03}", type=self.random.choice(TYPES), priority=self.random.randint(0, 2),
            max_attempts=self.random.randint(1, 3), lease_duration=LEASE, scheduled_at=due,
            unique_key=f"k{self.random.randint(0, 3)}" if self.random.random() < 0.2 else None,
        )  # fmt: skip

    def _sweep(self, *, faults: bool) -> list[Any]:
        """It may be late or not come at all, but not for ever."""
        with self.store.read() as reader:
            due = [key[2] for key in reader.due(100)]
        return [UpdateDueTask(**BASE, task_id=name) for name in due if not faults or self.random.random() < 0.4]

    def _hear(self, command: Any, outcome: Any) -> None:
        if isinstance(outcome, Created):
            if not outcome.deduplicated:
                self.inspector.made(outcome.task)
        elif isinstance(command, RequeueTask) and isinstance(outcome, TaskOutcome):
            self.inspector.requeued(outcome.task)
        elif isinstance(command, CancelTask) and isinstance(outcome, TaskOutcome):
            if outcome.task.state != CANCELLED:
                self.inspector.asked_to_stop.add(command.task_id)
            elif command.task_id not in self.inspector.finished:
                self.inspector.over(outcome.task)
        else:
            assert isinstance(outcome, bool | Conflict | Claimed), f"nobody expected {outcome!r}"

    def _pass_time(self) -> None:
        deadlines = [until for promised in self.inspector.promised.values() for until in promised.values()]
        following = [until for until in deadlines if until > self.clock.now]
        if following and self.random.random() < 0.3:
            self.clock.now = min(following) - self.random.randint(0, 1)  # the last microsecond, or the first after it
        else:
            self.clock.now += self.random.randrange(LEASE // 3)
