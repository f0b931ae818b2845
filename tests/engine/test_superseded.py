"""A worker that slept past its lease changes nothing, and its successor finishes.

A claims, expires, B claims, A comes back: in many random interleavings on each store, in one batch and across batches,
swept or not, one after the other and on two threads at once.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.core.errors import InvalidTransition, LeaseExpired, LeaseSuperseded
from holdfast.core.event import Event
from holdfast.core.row import SECOND
from holdfast.core.task import CLAIMED, COMPLETED, Handover, Task
from holdfast.engine.ticket import Ticket
from tests.proof_size import sized
from tests.support import STORES, Keep, check_log, every, idle_lane, run
from tests.task_commands import LEASE, beat, complete, create, fail, release_task, sweep, take, take_this, undeliver

TRIALS, PARTS = sized(30, 1_000), sized(1, 10)
REFUSED = (LeaseExpired, LeaseSuperseded, InvalidTransition)


LOCK_SECONDS = 30
"""How long a batch waits for rows of another: a lane would try again later."""


def attempt(store, lane, commands):
    """Run one batch as a lane does, again if another transaction wrote first."""
    tickets = [Ticket(command, Keep()) for command in commands]
    return [outcome for _, outcome in idle_lane(store, number=lane)._attempt(tickets, LOCK_SECONDS).replies]


class Trial:
    """One task, a late worker A and its successor B, under one seed."""

    def __init__(self, store, clock, seed):
        self.store = store
        self.clock = clock
        self.rng = random.Random(seed)
        self.task_id = f"t{seed}"

    def begin(self):
        """A claims the task, renews it, and sleeps past its lease; the sweep may have ended the lease or not."""
        run(self.store, create(self.task_id, max_attempts=5))
        if self.rng.random() < 0.5:
            run(self.store, take_this(self.task_id, seed="A", worker="A"))
        else:
            run(self.store, take("work", seed="A", worker="A"))
        for _ in range(self.rng.randint(0, 2)):
            self.clock.advance(self.rng.randint(1, LEASE // SECOND - 1))
            run(self.store, beat(self.task_id, "A", handover=Handover(note="from A")))
        self.clock.now = self.row().expires_at + self.rng.choice([0, 1, SECOND])
        if self.rng.random() < 0.3:
            sweep(self.store)

    def row(self):
        with self.store.read() as reader:
            return reader.row(Task, "default", self.task_id)

    def late_commands(self):
        """The commands of A when it wakes up."""
        task_id = self.task_id
        verbs = [
            fail(task_id, "A", reason="A says so"), fail(task_id, "A", permanent=True), release_task(task_id, "A"),
            undeliver(task_id, "A"), beat(task_id, "A", handover=Handover(note="A again")),
        ]  # fmt: skip
        commands = [complete(task_id, "A", result='{"by":"A"}'), *self.rng.choices(verbs, k=self.rng.randint(0, 3))]
        self.rng.shuffle(commands)
        return [("A", command) for command in commands]

    def successor_commands(self):
        """The commands of B: claim, renew, perhaps complete."""
        commands = [take_this(self.task_id, seed="B", worker="B")]
        commands += [beat(self.task_id, "B") for _ in range(self.rng.randint(0, 2))]
        if self.rng.random() < 0.7:
            commands.append(complete(self.task_id, "B", result='{"by":"B"}'))
        return [("B", command) for command in commands]

    def interleave(self, first, second):
        """Interleave both lists at random, each in its order, in random batches."""
        left, right, batches = list(first), list(second), [[]]
        while left or right:
            source = left if left and (not right or self.rng.random() < 0.5) else right
            batches[-1].append(source.pop(0))
            if self.rng.random() < 0.5:
                batches.append([])
        return [batch for batch in batches if batch]

    def run_in_sequence(self):
        outcomes_by_worker = []
        for batch in self.interleave(self.late_commands(), self.successor_commands()):
            outcomes = attempt(self.store, 0, [command for _, command in batch])
            outcomes_by_worker += [
                (who, command, outcome) for (who, command), outcome in zip(batch, outcomes, strict=True)
            ]
        return outcomes_by_worker

    def run_concurrently(self):
        """Run both lists on two threads, as on two servers."""

        def alone(lane, commands):
            return [(who, command, attempt(self.store, lane, [command])[0]) for who, command in commands]

        with ThreadPoolExecutor(2) as pool:
            parts = pool.map(alone, [0, 1], [self.late_commands(), self.successor_commands()])
            return [one for part in parts for one in part]

    def check(self, outcomes_by_worker):
        """Check that A was always refused, B always served, and that row and log have only the changes of B."""
        for who, command, outcome in outcomes_by_worker:
            fine = isinstance(outcome, REFUSED) if who == "A" else not isinstance(outcome, BaseException)
            assert fine, f"{who}'s {type(command).__name__} was answered {outcome!r}"
        finished = (
            type(outcomes_by_worker[-1][1]).__name__ == "CompleteTask" if outcomes_by_worker[-1][0] == "B" else None
        )
        row = self.row()
        assert row.worker == "B"
        assert row.state in {CLAIMED, COMPLETED}
        assert finished is None or (row.state == COMPLETED) == finished
        assert row.result == ('{"by":"B"}' if row.state == COMPLETED else None)
        assert (row.attempt, row.attempt_count) == (2, 2)
        with self.store.read() as reader:
            kinds = [event.kind for event in reader.history("default", f"task:{self.task_id}")]
        assert kinds.count("task.expired") == 1
        assert kinds.count("task.claimed") == 2
        assert kinds.count("task.completed") == (row.state == COMPLETED)
        assert {"task.failed", "task.released", "task.undelivered", "task.dead_lettered"}.isdisjoint(kinds)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", STORES)
def test_a_superseded_holder_changes_nothing_and_its_successor_finishes(opened, clock, kind, part):
    store, seeds = opened(kind, clock), range(part, TRIALS, PARTS)
    for seed in seeds:
        trial = Trial(store, clock, seed)
        trial.begin()
        outcomes_by_worker = trial.run_concurrently() if seed % 3 == 0 else trial.run_in_sequence()
        try:
            trial.check(outcomes_by_worker)
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}: {failure}") from failure
        run(store, complete(trial.task_id, "B"))  # so that the next trial does not claim it
    assert sum(event.kind == "task.completed" for event in every(store, Event)) == len(seeds)
    check_log(store)
