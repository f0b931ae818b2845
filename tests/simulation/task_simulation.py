"""Simulation of tasks from one seed: workers claim, complete, fail, crash, pause and repeat reports."""

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
from tests.simulation.task_checker import TaskChecker
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
    """Sends one command at a time. It may pause past its lease, crash and forget its leases, or repeat a report."""

    def __init__(self, number: int, simulation: TaskSimulation) -> None:
        self.number = number
        self.simulation = simulation
        self.rng = simulation.random
        self.held: dict[str, str] = {}
        self.last_report: Any = None
        self.paused_until: Instant = 0

    def next_command(self, *, faults: bool) -> Any:
        if self.paused_until > self.simulation.clock.now:
            return None
        fate = self.rng.random() if faults else 1.0
        if fate < 0.05:
            self.held = {}  # crash
            return None
        if fate < 0.12:
            self.paused_until = self.simulation.clock.now + self.rng.randrange(2 * LEASE)
            return None
        if fate < 0.2 and self.last_report is not None:
            return self.last_report  # as if the first answer was lost
        if not self.held or self.rng.random() < 0.2:
            return self.claim()
        self.last_report = self.work(faults=faults)
        return self.last_report

    def claim(self) -> Any:
        types = self.rng.choice([("cut",), ("weld",), TYPES, ()])
        return take(*types, seed=self.simulation.seed(), limit=self.rng.randint(1, 3), worker=f"w{self.number}")

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

    def handle_outcome(self, command: Any, outcome: Any) -> None:
        checker, now = self.simulation.checker, self.simulation.clock.now
        if isinstance(outcome, TaskOutcome):
            first_time = (type(command).__name__, command.lease_id) not in checker.reported
            checker.acted(type(command).__name__, outcome.task, command.lease_id, now)
            if first_time and isinstance(command, HandBackTask | UndeliverTask):
                checker.uncount_attempt(outcome.task)
            if outcome.task.state != CLAIMED:
                self.held.pop(command.task_id, None)
        elif isinstance(outcome, Claimed):
            self.held |= {taken.task.id: taken.lease_id for taken in outcome.taken}
        elif isinstance(outcome, Conflict):
            checker.refused(command.task_id, command.lease_id, now)
            if self.held.get(command.task_id) == command.lease_id:
                del self.held[command.task_id]
        else:
            assert isinstance(outcome, Empty), f"unexpected outcome {outcome!r}"


class TaskSimulation:
    """One run: clock, store, checker and workers, from one seed."""

    def __init__(self, seed: int, workers: int = 4) -> None:
        self.random = random.Random(seed)
        self.clock = DrivenClock()
        self.store = MemoryStore(self.clock)
        self.checker = TaskChecker()
        self.workers = [Worker(number, self) for number in range(workers)]
        self._created = 0
        self._seeds = 0

    def run(self, steps: int = 60) -> None:
        """Run with faults, then without: every task must be finished in a bounded time."""
        for _ in range(steps):
            self.step(faults=True)
        for worker in self.workers:
            worker.held, worker.paused_until = {}, 0
        for _ in range(200):
            self.step(faults=False)
            if all(task.state in FINAL_STATES for task in every(self.store, Task)):
                break
        self.checker.check_final_states(every(self.store, Task))
        check_log(self.store)

    def step(self, *, faults: bool) -> None:
        """Advance the clock, then run one batch with commands of some workers, producers and the sweep."""
        self._pass_time()
        batch: list[tuple[Worker | None, Any]] = []
        for worker in self.random.sample(self.workers, self.random.randint(1, len(self.workers))):
            command = worker.next_command(faults=faults)
            if command is not None:
                batch.append((worker, command))
        batch += [(None, command) for command in (*self._other_commands(faults=faults), *self._sweep(faults=faults))]
        self.random.shuffle(batch)
        if not batch:
            return
        outcomes = transact(self.store, *(command for _, command in batch))
        for (worker, command), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Claimed):
                for taken in outcome.taken:
                    self.checker.granted(taken, self.clock.now)
            if worker is not None:
                worker.handle_outcome(command, outcome)
            else:
                self._handle_outcome(command, outcome)

    def seed(self) -> str:
        """A new seed for lease ids."""
        self._seeds += 1
        return f"seed-{self._seeds}"

    def _other_commands(self, *, faults: bool) -> list[Any]:
        """Commands of producers, and cancels, requeues and abandoned claims."""
        if not faults:
            return []
        commands = [self._create() for _ in range(self.random.choice([0, 0, 1, 2]))]
        task_ids = sorted(self.checker.limits)
        if task_ids and self.random.random() < 0.1:
            commands.append(cancel(self.random.choice(task_ids), self.random.choice(["pending", "request", "force"])))
        if task_ids and self.random.random() < 0.3:
            commands.append(requeue(self.random.choice(task_ids)))
        if task_ids and self.random.random() < 0.1:  # a worker that claims a task and disappears
            commands.append(take_this(self.random.choice(task_ids), seed=self.seed()))
        return commands

    def _create(self) -> Any:
        self._created += 1
        due = self.clock.now + self.random.randint(1, LEASE) if self.random.random() < 0.2 else None
        return create(
            f"t{self._created:03}", type=self.random.choice(TYPES), priority=self.random.randint(0, 2),
            max_attempts=self.random.randint(1, 3), lease_duration=LEASE, scheduled_at=due,
            unique_key=f"k{self.random.randint(0, 3)}" if self.random.random() < 0.2 else None,
        )  # fmt: skip

    def _sweep(self, *, faults: bool) -> list[Any]:
        """Commands of the sweep for due tasks; with faults it skips some."""
        with self.store.read() as reader:
            due = [key[2] for key in reader.due(100)]
        return [UpdateDueTask(**BASE, task_id=name) for name in due if not faults or self.random.random() < 0.4]

    def _handle_outcome(self, command: Any, outcome: Any) -> None:
        if isinstance(outcome, Created):
            if not outcome.deduplicated:
                self.checker.created(outcome.task)
        elif isinstance(command, RequeueTask) and isinstance(outcome, TaskOutcome):
            self.checker.requeued(outcome.task)
        elif isinstance(command, CancelTask) and isinstance(outcome, TaskOutcome):
            if outcome.task.state != CANCELLED:
                self.checker.cancel_requested.add(command.task_id)
            elif command.task_id not in self.checker.finished:
                self.checker.finish(outcome.task)
        else:
            assert isinstance(outcome, bool | Conflict | Claimed), f"unexpected outcome {outcome!r}"

    def _pass_time(self) -> None:
        deadlines = [until for promised in self.checker.promised.values() for until in promised.values()]
        following = [until for until in deadlines if until > self.clock.now]
        if following and self.random.random() < 0.3:
            self.clock.now = min(following) - self.random.randint(0, 1)  # the last microsecond, or the first after it
        else:
            self.clock.now += self.random.randrange(LEASE // 3)
