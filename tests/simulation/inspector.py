"""Holds a queue to what it told its callers. It knows nothing of queues: it hears who was told what, and when."""

from __future__ import annotations

from collections import Counter

from holdfast.core.row import Instant
from holdfast.core.task import CANCELLED, COMPLETED, DEAD, FINAL_STATES, PERMANENT, Task
from holdfast.engine.verbs.tasks.claiming import Taken


class Inspector:
    """One holder at a time by the newest token, every task finished at most once, none lost, no chance miscounted."""

    def __init__(self) -> None:
        self.limits: dict[str, int] = {}
        """Every task that was made, and how many chances it has."""
        self.promised: dict[str, dict[str, Instant]] = {}
        """By task: lease id -> until when its holder was promised it, as far as nobody took it away."""
        self.tokens: dict[str, int] = {}
        self.newest: dict[str, int] = {}
        self.newest_of_all = 0
        self.attempts: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        """Chances used since the task was last put into its queue."""
        self.finished: dict[str, str] = {}
        self.asked_to_stop: set[str] = set()
        self.said: set[tuple[str, str]] = set()
        self.seen: Counter[str] = Counter()

    def made(self, task: Task) -> None:
        self.seen["made"] += 1
        assert task.id not in self.limits, f"{task.id} was made twice"
        self.limits[task.id] = task.max_attempts

    def granted(self, taken: Taken, now: Instant) -> None:
        self.seen["granted"] += 1
        task, lease_id = taken.task, taken.lease_id
        others = {holder: until for holder, until in self.promised.get(task.id, {}).items() if until > now}
        assert not others, f"{task.id} was promised to {others} when {lease_id} got it at {now}"
        assert task.id not in self.finished, f"{task.id} was given away although it was {self.finished.get(task.id)}"
        assert task.token > self.newest_of_all, f"{task.id}: token {task.token} was passed by {self.newest_of_all}"
        assert task.attempt > self.attempts[task.id], f"{task.id}: attempt {task.attempt} is not a new one"
        self.newest[task.id] = self.newest_of_all = self.tokens[lease_id] = task.token
        self.attempts[task.id] = task.attempt
        self.used[task.id] += 1
        assert task.attempt_count == self.used[task.id] <= self.limits[task.id], f"{task.id}: chances were miscounted"
        self.promised[task.id] = {lease_id: task.expires_at or 0}

    def acted(self, verb: str, task: Task, lease_id: str, now: Instant) -> None:
        """A holder's write was accepted."""
        if (verb, lease_id) in self.said:
            self.seen["repeated"] += 1  # answered once more, not done once more: what comes below holds all the same
            return
        self.seen["acted"] += 1
        assert self.tokens[lease_id] == self.newest[task.id], (
            f"{task.id}: {lease_id} acted with a token that was passed"
        )
        until = self.promised[task.id].get(lease_id, 0)
        assert until > now, f"{task.id}: {lease_id} acted after its time, or after it had let go"
        self.promised[task.id] = {} if task.expires_at is None else {lease_id: task.expires_at}
        if task.expires_at is None:
            self.said.add((verb, lease_id))
        if task.state in {COMPLETED, CANCELLED}:
            self.over(task)

    def refused(self, task_id: str, lease_id: str, now: Instant) -> None:
        """A holder's write was refused."""
        self.seen["refused"] += 1
        until = self.promised.get(task_id, {}).get(lease_id, 0)
        assert until <= now, f"{task_id}: {lease_id} was refused although it was promised until {until}"

    def given_back(self, task: Task) -> None:
        """The attempt is not counted."""
        self.used[task.id] -= 1

    def requeued(self, task: Task) -> None:
        self.seen["requeued"] += 1
        self.used[task.id] = 0

    def over(self, task: Task) -> None:
        """It was said to be finished for good."""
        assert task.id not in self.finished, f"{task.id} was finished twice"
        self.seen[task.state] += 1
        self.finished[task.id] = task.state
        self.promised[task.id] = {}

    def settle_accounts(self, tasks: list[Task]) -> None:
        """Every task that was made is there, and each came to the end that its callers heard of."""
        assert sorted(task.id for task in tasks) == sorted(self.limits), "a task was lost"
        for task in tasks:
            told = self.finished.get(task.id)
            assert task.state in FINAL_STATES, f"{task.id} is still {task.state}"
            assert told in {None, task.state}, f"{task.id} was said to be {told} and is {task.state}"
            assert task.state != COMPLETED or told, f"{task.id} was finished by nobody"
            assert task.state != CANCELLED or told or task.id in self.asked_to_stop, f"nobody cancelled {task.id}"
            if task.state == DEAD and task.dead_cause != PERMANENT:
                assert self.used[task.id] >= self.limits[task.id], f"{task.id} was given up too soon"
            self.seen[f"in the end {task.state}"] += 1
