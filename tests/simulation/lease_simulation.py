"""Simulation of leases from one seed: workers claim, renew, release, crash and pause; a checker compares the answers.

The checker does not use the rules of leases. It gets every answer with its time, and fails if one contradicts another.
"""

from __future__ import annotations

import random
from typing import Any

from holdfast.core.errors import LeaseLost, NotHeld
from holdfast.core.row import SECOND, Instant
from holdfast.engine.command import Command, Held
from holdfast.engine.expiry import ExpireLease
from holdfast.engine.verbs.jobs import Changed, Claimed, ForceRelease
from holdfast.store.memory.store import MemoryStore
from tests.support import ACCOUNT, CAUSE, DrivenClock, check_log, claim, heartbeat, release, transact

NAMES = ("north", "south")
TTL = 10 * SECOND


class Checker:
    """Checks that the answers to workers do not contradict each other."""

    def __init__(self) -> None:
        self.newest: dict[str, int] = {}
        self.newest_token = 0
        self.promised: dict[str, dict[str, Instant]] = {name: {} for name in NAMES}
        """By name: lease id -> until when it was granted, unless it was taken away."""
        self.tokens: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def granted(self, name: str, outcome: Claimed, now: Instant) -> None:
        self._count("granted")
        token, lease_id = outcome.lease.token, outcome.lease_id
        others = {holder: until for holder, until in self.promised[name].items() if until > now}
        assert not others, f"{name} was promised to {others} when {lease_id} got it at {now}"
        assert token > self.newest.get(name, 0), f"{name}: token {token} is not above {self.newest.get(name)}"
        assert token > self.newest_token, f"token {token} was passed by {self.newest_token}"
        self.newest[name] = self.newest_token = token
        self.tokens[lease_id] = token
        self.promised[name] = {lease_id: outcome.lease.expires_at or 0}

    def acted(self, name: str, lease_id: str, now: Instant, until: Instant | None) -> None:
        """A holder's write was accepted."""
        self._count("acted")
        assert self.tokens[lease_id] == self.newest[name], f"{name}: {lease_id} acted with a token that was passed"
        assert self.promised[name].get(lease_id, 0) > now, f"{name}: {lease_id} acted after its time"
        self.promised[name] = {} if until is None else {lease_id: until}

    def refused(self, name: str, lease_id: str, now: Instant) -> None:
        """A holder's write was refused."""
        self._count("lost")
        until = self.promised[name].get(lease_id, 0)
        assert until <= now, f"{name}: {lease_id} lost it although it was promised until {until}"

    def evicted(self, name: str) -> None:
        self._count("evicted")
        self.promised[name] = {}

    def found_held(self, name: str, outcome: Held, now: Instant) -> None:
        self._count("held")
        assert any(until > now for until in self.promised[name].values()), (
            f"{name} is held, but was granted to no worker"
        )

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


class Worker:
    """Sends one command at a time. It may pause past its lease and continue, or crash and forget its leases."""

    def __init__(self, number: int, simulation: LeaseSimulation) -> None:
        self.number = number
        self.simulation = simulation
        self.held: dict[str, str] = {}
        self.paused_until: Instant = 0
        self.commands = 0
        self.acquired: set[str] = set()

    def next_command(self, *, faults: bool) -> Command[Any] | None:
        self.commands += 1
        rng = self.simulation.random
        if self.paused_until > self.simulation.clock.now:
            return None
        if faults and rng.random() < 0.04:
            self.held = {}  # crash
            return None
        if faults and rng.random() < 0.06:
            self.paused_until = self.simulation.clock.now + rng.randrange(2 * TTL)
            return None
        name = rng.choice(NAMES)
        lease_id = self.held.get(name)
        if lease_id is None:
            return claim(name, f"w{self.number}-{self.commands}", owner=f"w{self.number}", ttl=TTL)
        if rng.random() < (0.3 if faults else 0.6):
            return release(name, lease_id, note="done")
        return heartbeat(name, lease_id, ttl=rng.choice([None, TTL // 2, 2 * TTL]))

    def handle_outcome(self, command: Any, outcome: Any) -> None:
        checker, now = self.simulation.checker, self.simulation.clock.now
        if isinstance(outcome, Claimed):
            checker.granted(command.name, outcome, now)
            self.held[command.name] = outcome.lease_id
            self.acquired.add(command.name)
        elif isinstance(outcome, Held):
            checker.found_held(command.name, outcome, now)
        elif isinstance(outcome, Changed):
            checker.acted(command.name, command.lease_id, now, outcome.lease.expires_at)
            if outcome.lease.expires_at is None:
                del self.held[command.name]
        elif isinstance(outcome, LeaseLost):
            checker.refused(command.name, command.lease_id, now)
            self.held.pop(command.name, None)
        else:
            raise AssertionError(f"unexpected outcome {outcome!r}")  # noqa: TRY004 - a broken promise, not a type


class LeaseSimulation:
    """One run: clock, store, checker and workers, from one seed."""

    def __init__(self, seed: int, workers: int = 4) -> None:
        self.random = random.Random(seed)
        self.clock = DrivenClock()
        self.store = MemoryStore(self.clock)
        self.checker = Checker()
        self.workers = [Worker(number, self) for number in range(workers)]

    def step(self, *, faults: bool) -> None:
        """Advance the clock, then run one batch with commands of some workers."""
        self._pass_time()
        batch: list[tuple[Worker | None, Any]] = []
        for worker in self.random.sample(self.workers, self.random.randint(1, len(self.workers))):
            command = worker.next_command(faults=faults)
            if command is not None:
                batch.append((worker, command))
        name = self.random.choice(NAMES)
        if self.random.random() < 0.3:  # the sweep, which may be late or absent
            batch.insert(
                self.random.randint(0, len(batch)), (None, ExpireLease(account=ACCOUNT, cause=CAUSE, name=name))
            )
        if faults and self.random.random() < 0.03:
            eviction = ForceRelease(account=ACCOUNT, cause=CAUSE, name=name, by="admin", reason="chaos")
            batch.insert(self.random.randint(0, len(batch)), (None, eviction))
        if not batch:
            return
        outcomes = transact(self.store, *(command for _, command in batch))
        for (worker, command), outcome in zip(batch, outcomes, strict=True):
            if worker is not None:
                worker.handle_outcome(command, outcome)
            elif isinstance(outcome, Changed):
                self.checker.evicted(command.name)
            else:
                assert isinstance(outcome, bool | NotHeld), outcome

    def _pass_time(self) -> None:
        deadlines = [until for promised in self.checker.promised.values() for until in promised.values()]
        following = [until for until in deadlines if until > self.clock.now]
        if following and self.random.random() < 0.25:
            self.clock.now = min(following) - self.random.randint(0, 1)  # the last microsecond, or the first after it
        else:
            self.clock.now += self.random.randrange(TTL // 3)

    def run(self, steps: int = 60) -> None:
        """Run with faults, then without: every worker must acquire every name in a bounded time."""
        for _ in range(steps):
            self.step(faults=True)
        for worker in self.workers:
            worker.held, worker.paused_until, worker.acquired = {}, 0, set()
        for _ in range(40 * len(self.workers)):
            self.step(faults=False)
            if all(worker.acquired == set(NAMES) for worker in self.workers):
                break
        else:
            raise AssertionError(f"a worker was never served: {[worker.acquired for worker in self.workers]}")
        check_log(self.store)
