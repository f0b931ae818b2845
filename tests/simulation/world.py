"""A small world under one seed: workers that claim, renew, release, crash and sleep too long, and somebody who checks.

The checker knows nothing of leases. It hears what each worker was told, and when, and holds the service to its words.
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
    """Holds the service to what it told its callers."""

    def __init__(self) -> None:
        self.newest: dict[str, int] = {}
        self.newest_of_all = 0
        self.promised: dict[str, dict[str, Instant]] = {name: {} for name in NAMES}
        """By name: lease id -> until when its holder was promised it, as far as nobody took it away."""
        self.tokens: dict[str, int] = {}
        self.seen: dict[str, int] = {}

    def granted(self, name: str, outcome: Claimed, now: Instant) -> None:
        self._count("granted")
        token, lease_id = outcome.lease.token, outcome.lease_id
        others = {holder: until for holder, until in self.promised[name].items() if until > now}
        assert not others, f"{name} was promised to {others} when {lease_id} got it at {now}"
        assert token > self.newest.get(name, 0), f"{name}: token {token} is not above {self.newest.get(name)}"
        assert token > self.newest_of_all, f"token {token} was passed by {self.newest_of_all}"
        self.newest[name] = self.newest_of_all = token
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
        assert any(until > now for until in self.promised[name].values()), f"{name} is held, but nobody was promised it"

    def _count(self, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1


class Worker:
    """Does one thing a turn. It may sleep through its lease and act all the same, and may forget all it knew."""

    def __init__(self, number: int, world: World) -> None:
        self.number = number
        self.world = world
        self.held: dict[str, str] = {}
        self.sleeps_until: Instant = 0
        self.turns = 0
        self.had: set[str] = set()

    def turn(self, *, faults: bool) -> Command[Any] | None:
        self.turns += 1
        rng = self.world.random
        if self.sleeps_until > self.world.clock.now:
            return None
        if faults and rng.random() < 0.04:
            self.held = {}  # crash
            return None
        if faults and rng.random() < 0.06:
            self.sleeps_until = self.world.clock.now + rng.randrange(2 * TTL)
            return None
        name = rng.choice(NAMES)
        lease_id = self.held.get(name)
        if lease_id is None:
            return claim(name, f"w{self.number}-{self.turns}", owner=f"w{self.number}", ttl=TTL)
        if rng.random() < (0.3 if faults else 0.6):
            return release(name, lease_id, note="done")
        return heartbeat(name, lease_id, ttl=rng.choice([None, TTL // 2, 2 * TTL]))

    def hear(self, command: Any, outcome: Any) -> None:
        checker, now = self.world.checker, self.world.clock.now
        if isinstance(outcome, Claimed):
            checker.granted(command.name, outcome, now)
            self.held[command.name] = outcome.lease_id
            self.had.add(command.name)
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
            raise AssertionError(f"nobody expected {outcome!r}")  # noqa: TRY004 - a broken promise, not a type


class World:
    """Everything of one run, from one seed."""

    def __init__(self, seed: int, workers: int = 4) -> None:
        self.random = random.Random(seed)
        self.clock = DrivenClock()
        self.store = MemoryStore(self.clock)
        self.checker = Checker()
        self.workers = [Worker(number, self) for number in range(workers)]

    def step(self, *, faults: bool) -> None:
        """Some time, then one batch of whoever has something to do."""
        self._pass_time()
        batch: list[tuple[Worker | None, Any]] = []
        for worker in self.random.sample(self.workers, self.random.randint(1, len(self.workers))):
            command = worker.turn(faults=faults)
            if command is not None:
                batch.append((worker, command))
        name = self.random.choice(NAMES)
        if self.random.random() < 0.3:  # the sweep, which may be late or not come at all
            batch.insert(
                self.random.randint(0, len(batch)), (None, ExpireLease(account=ACCOUNT, cause=CAUSE, name=name))
            )
        if faults and self.random.random() < 0.03:
            eviction = ForceRelease(account=ACCOUNT, cause=CAUSE, name=name, by="admin", reason="chaos")
            batch.insert(self.random.randint(0, len(batch)), (None, eviction))
        if not batch:
            return
        outcomes = transact(self.store, *(command for _, command in batch))
        for (who, command), outcome in zip(batch, outcomes, strict=True):
            if who is not None:
                who.hear(command, outcome)
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
        """Trouble first; when it has stopped everybody must get everything, in a bounded time."""
        for _ in range(steps):
            self.step(faults=True)
        for worker in self.workers:
            worker.held, worker.sleeps_until, worker.had = {}, 0, set()
        for _ in range(40 * len(self.workers)):
            self.step(faults=False)
            if all(worker.had == set(NAMES) for worker in self.workers):
                break
        else:
            raise AssertionError(f"somebody waits for ever: {[worker.had for worker in self.workers]}")
        check_log(self.store)
