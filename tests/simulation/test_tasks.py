"""Simulation of tasks: one holder at a time, finished at most once, and never lost, for every seed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.task import ending, holding, queueing
from holdfast.engine.batches import ready_heap
from holdfast.store.memory.store import MemoryTransaction
from tests.proof_size import FULL
from tests.simulation.task_simulation import TaskSimulation

SEEDS, PARTS = (10_000, 40) if FULL else (60, 4)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_seed_keeps_the_promises(part):
    seen = {}
    for seed in range(part, SEEDS, PARTS):
        simulation = TaskSimulation(seed)
        try:
            simulation.run()
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}: {failure}") from failure
        for what, count in simulation.checker.counts.items():
            seen[what] = seen.get(what, 0) + count
    # Runs without faults prove nothing.
    assert set(seen) == {
        "created", "granted", "acted", "refused", "repeated", "requeued", "completed", "cancelled",
        "in the end completed", "in the end cancelled", "in the end dead_letter",
    }  # fmt: skip
    assert min(seen.values()) > 10, seen


def fails(seeds=25):
    """Whether the checker notices a broken rule within a few seeds."""
    for seed in range(seeds):
        try:
            TaskSimulation(seed).run()
        except AssertionError:
            return True
    return False


def lenient(rule):
    """A rule of core that ignores a task without a holder, so that only the missing check is the bug."""
    return lambda task, *args, **more: rule(task, *args, **more) if task.proof is not None else task


def break_rule(monkeypatch, name, broken):
    """Replace a rule in every module that uses it."""
    users = [module for module in (tasks, ending, holding, queueing, ready_heap) if hasattr(module, name)]
    assert users, name
    for module in users:
        monkeypatch.setattr(module, name, broken)


def without_holder_checks(monkeypatch):
    break_rule(monkeypatch, "check_holder", lambda task, proof, now: None)
    for name in ("complete", "fail", "hand_back", "undeliver", "heartbeat"):
        break_rule(monkeypatch, name, lenient(getattr(tasks, name)))


def deadline_too_late(monkeypatch):
    break_rule(monkeypatch, "is_live", lambda task, now: task.expires_at is not None and task.expires_at >= now)


def lapse_too_early(monkeypatch):
    early = lambda task, now: task.expires_at is not None and task.expires_at - 1 <= now
    break_rule(monkeypatch, "is_due", early)


def tokens_that_come_again(monkeypatch):
    monkeypatch.setattr(MemoryTransaction, "draw", lambda self, count: [1] * count)


def held_tasks_in_the_queue(monkeypatch):
    claim = tasks.claim
    claimable = lambda task, now: task.state in tasks.LIVE_STATES
    break_rule(monkeypatch, "claim", lambda task, by, **more: replace(claim(task, by, **more), ready=True))
    break_rule(monkeypatch, "is_claimable", claimable)


def lapses_that_are_never_settled(monkeypatch):
    break_rule(monkeypatch, "expire_if_due", lambda task, now: task)


def scheduled_tasks_that_never_come_due(monkeypatch):
    break_rule(monkeypatch, "is_schedule_due", lambda task, now: False)


def hand_backs_that_count(monkeypatch):
    back = tasks.hand_back
    counted = lambda task, *args, **more: replace(back(task, *args, **more), attempt_count=task.attempt_count)
    break_rule(monkeypatch, "hand_back", counted)


def one_attempt_too_few(monkeypatch):
    lapse = tasks.lapse
    break_rule(monkeypatch, "lapse", lambda task, now, **more: lapse(replace(task, max_attempts=1), now, **more))


def finished_tasks_that_come_back(monkeypatch):
    requeue = tasks.requeue
    again = lambda task, now, **more: requeue(replace(task, state=tasks.DEAD), now, **more)
    break_rule(monkeypatch, "requeue", again)


@pytest.mark.parametrize(
    "breaking",
    [
        without_holder_checks,
        deadline_too_late,
        lapse_too_early,
        tokens_that_come_again,
        held_tasks_in_the_queue,
        lapses_that_are_never_settled,
        scheduled_tasks_that_never_come_due,
        hand_backs_that_count,
        one_attempt_too_few,
        finished_tasks_that_come_back,
    ],
)
def test_the_checker_notices_a_broken_rule(monkeypatch, breaking):
    breaking(monkeypatch)
    assert fails()


def test_the_checker_notices_nothing_when_nothing_is_broken():
    assert not fails(5)
