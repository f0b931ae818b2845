"""Checks that the answers about tasks do not contradict each other, without using the rules of queues."""

from __future__ import annotations

from collections import Counter

from holdfast.core.row import Instant
from holdfast.core.task import CANCELLED, COMPLETED, DEAD, FINAL_STATES, PERMANENT, Task
from holdfast.engine.verbs.tasks.claiming import GrantedTask


class TaskChecker:
    """Checks: one holder at a time, newest token, every task finished at most once, none lost, attempts counted."""

    def __init__(self) -> None:
        self.limits: dict[str, int] = {}
        """Every created task, and its maximum of attempts."""
        self.promised: dict[str, dict[str, Instant]] = {}
        """By task: lease id -> until when it was granted, unless it was taken away."""
        self.tokens: dict[str, int] = {}
        self.newest: dict[str, int] = {}
        self.newest_token = 0
        self.attempts: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        """Attempts used since the task was created or requeued."""
        self.finished: dict[str, str] = {}
        self.cancel_requested: set[str] = set()
        self.reported: set[tuple[str, str]] = set()
        self.counts: Counter[str] = Counter()

    def created(self, task: Task) -> None:
        self.counts["created"] += 1
        assert task.id not in self.limits, f"{task.id} was created twice"
        self.limits[task.id] = task.max_attempts

    def granted(self, taken: GrantedTask, now: Instant) -> None:
        self.counts["granted"] += 1
        task, lease_id = taken.task, taken.lease_id
        others = {holder: until for holder, until in self.promised.get(task.id, {}).items() if until > now}
        assert not others, f"{task.id} was promised to {others} when {lease_id} got it at {now}"
        assert task.id not in self.finished, f"{task.id} was given away although it was {self.finished.get(task.id)}"
        assert task.token > self.newest_token, f"{task.id}: token {task.token} was passed by {self.newest_token}"
        assert task.attempt > self.attempts[task.id], f"{task.id}: attempt {task.attempt} is not a new one"
        self.newest[task.id] = self.newest_token = self.tokens[lease_id] = task.token
        self.attempts[task.id] = task.attempt
        self.used[task.id] += 1
        assert task.attempt_count == self.used[task.id] <= self.limits[task.id], f"{task.id}: attempts were miscounted"
        self.promised[task.id] = {lease_id: task.expires_at or 0}

    def acted(self, verb: str, task: Task, lease_id: str, now: Instant) -> None:
        """A holder's write was accepted."""
        if (verb, lease_id) in self.reported:
            self.counts["repeated"] += 1  # answered again, not applied again
            return
        self.counts["acted"] += 1
        assert self.tokens[lease_id] == self.newest[task.id], (
            f"{task.id}: {lease_id} acted with a token that was passed"
        )
        until = self.promised[task.id].get(lease_id, 0)
        assert until > now, f"{task.id}: {lease_id} acted after its time, or after it had let go"
        self.promised[task.id] = {} if task.expires_at is None else {lease_id: task.expires_at}
        if task.expires_at is None:
            self.reported.add((verb, lease_id))
        if task.state in {COMPLETED, CANCELLED}:
            self.finish(task)

    def refused(self, task_id: str, lease_id: str, now: Instant) -> None:
        """A holder's write was refused."""
        self.counts["refused"] += 1
        until = self.promised.get(task_id, {}).get(lease_id, 0)
        assert until <= now, f"{task_id}: {lease_id} was refused although it was promised until {until}"

    def uncount_attempt(self, task: Task) -> None:
        """Do not count the attempt of a task that was handed back."""
        self.used[task.id] -= 1

    def requeued(self, task: Task) -> None:
        self.counts["requeued"] += 1
        self.used[task.id] = 0

    def finish(self, task: Task) -> None:
        """Record that a task was reported as finished."""
        assert task.id not in self.finished, f"{task.id} was finished twice"
        self.counts[task.state] += 1
        self.finished[task.id] = task.state
        self.promised[task.id] = {}

    def check_final_states(self, tasks: list[Task]) -> None:
        """Check that every created task exists, in the final state that was reported."""
        assert sorted(task.id for task in tasks) == sorted(self.limits), "a task was lost"
        for task in tasks:
            reported_state = self.finished.get(task.id)
            assert task.state in FINAL_STATES, f"{task.id} is still {task.state}"
            assert reported_state in {None, task.state}, (
                f"{task.id} was reported as {reported_state} and is {task.state}"
            )
            assert task.state != COMPLETED or reported_state, f"{task.id} is completed, but no worker completed it"
            assert task.state != CANCELLED or reported_state or task.id in self.cancel_requested, (
                f"{task.id} was never cancelled"
            )
            if task.state == DEAD and task.dead_cause != PERMANENT:
                assert self.used[task.id] >= self.limits[task.id], f"{task.id} was given up too soon"
            self.counts[f"in the end {task.state}"] += 1
