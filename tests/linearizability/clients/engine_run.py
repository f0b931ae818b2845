"""Runs workers against engines in this process and records every call with its answer."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from holdfast.core.errors import Trouble
from holdfast.engine.engine import Engine
from tests.linearizability.clients.engine_calls import answer_of, command_of, fill_ids
from tests.linearizability.clients.engine_reads import read
from tests.linearizability.clients.store_time import StoreTime
from tests.linearizability.clients.workload import Names, Worker
from tests.linearizability.history import Call

ANSWER_SECONDS = 60.0


class EngineRun:
    """Workers in groups of a few, each with one call at a time, on one or several engines.

    `record` gets every call twice: when it is made and when it was answered.
    """

    def __init__(
        self,
        engines: list[Engine],
        store_time: StoreTime,
        rng: random.Random,
        name: str,
        ttl: int,
        *,
        groups: int = 8,
        workers: int = 4,
        group_calls: int = 150,
        record: Callable[[list[Call]], None] = lambda calls: None,
        between: Callable[[list[int]], None] = lambda deadlines: None,
        period_seconds: float | None = None,
        wait_seconds: float = 0.0,
    ) -> None:
        self.engines = engines
        self.store_time = store_time
        self.rng = rng
        self.name = name
        self.calls: list[Call] = []
        self._workers_per_group = workers
        self._group_calls = group_calls
        self._ttl = ttl
        self._record = record
        self._between = between
        self._period_seconds = period_seconds
        """After so many seconds of the machine's clock all programs go on to new groups, whose names they share."""
        self._wait_seconds = wait_seconds
        self._groups_made = 0
        self._names: dict[int, str] = {}
        self._replies: deque[tuple[Worker, Call, Any, int, int]] = deque()
        self._replied = threading.Event()
        self._groups: list[list[Worker]] = [self._new_group(place) for place in range(groups)]
        self._paused: list[tuple[int, Worker]] = []
        self._deadlines: list[int] = []
        """Of the newest answers."""

    def run(self, calls: int, enough: Callable[[], bool] = lambda: True) -> None:
        """Make this many calls and more until it is enough, then wait for all answers."""
        idle = [worker for group in self._groups for worker in group]
        waiting = 0
        while waiting or idle or self._paused:
            if len(self.calls) >= calls and enough():
                idle, self._paused = [], []
            waiting += self._ask(idle)
            answered = self._replied.wait(
                self.store_time.tick_seconds if self._paused else ANSWER_SECONDS if waiting else 0.0
            )
            assert answered or self._paused or not waiting, f"an engine did not answer within {ANSWER_SECONDS} s"
            self._replied.clear()
            free = self._take_replies()
            waiting -= len(free)
            if free or not waiting:  # a driven clock must not run away from an engine that gets no processor time
                self._between(self._deadlines)
            idle = [worker for worker in free if not self._pauses(worker)] + self._resume()

    # -- asking ----------------------------------------------------------------------------------------------------

    def _ask(self, idle: list[Worker]) -> int:
        """Let every idle worker make its next call; the number of calls that wait for an answer."""
        self.rng.shuffle(idle)
        made = [(worker, self._new_call(worker)) for worker in idle]
        self._record([call for _, call in made])
        waiting = 0
        for worker, call in made:
            call.called, call.earliest = time.monotonic_ns(), self.store_time.earliest()
            engine = self.rng.choice(self.engines)
            if call.verb.startswith("read_"):
                self._read(engine, worker, call)
            else:
                try:
                    engine.submit(command_of(call), self, (worker, call), call.args.get("wait_seconds", 0.0))
                except Trouble as error:
                    self._reply(worker, call, error)
            waiting += 1
        return waiting

    def _new_call(self, worker: Worker) -> Call:
        verb, args = worker.next_call()
        call = Call(
            f"{self.name}-{len(self.calls)}", worker.name, worker.names.group, verb, args, time.monotonic_ns(),
            self.store_time.earliest(),
        )  # fmt: skip
        fill_ids(call)
        if verb == "read_session":
            args["jobs"] = worker.names.jobs
        self.calls.append(call)
        return call

    def _read(self, engine: Engine, worker: Worker, call: Call) -> None:
        try:
            outcome: Any = engine.read(lambda reader: read(call, reader))
        except Trouble as error:
            outcome = error
        self._reply(worker, call, outcome)

    def deliver(self, replies: list[tuple[Any, Any]]) -> None:
        """Take the outcomes of a batch, in the thread of its lane."""
        for ticket, outcome in replies:
            self._reply(*ticket.slot, outcome)

    def _reply(self, worker: Worker, call: Call, outcome: Any) -> None:
        self._replies.append((worker, call, outcome, time.monotonic_ns(), self.store_time.latest()))
        self._replied.set()

    # -- answers ---------------------------------------------------------------------------------------------------

    def _take_replies(self) -> list[Worker]:
        found, answered = [], []
        while self._replies:
            worker, call, outcome, returned, latest = self._replies.popleft()
            is_read = isinstance(outcome, dict)
            call.answer = outcome if is_read else answer_of(call, outcome)
            if call.answer is not None:
                call.returned, call.latest = returned, latest
                if call.answer.get("expires_at") is not None:
                    self._deadlines.append(call.answer["expires_at"])
            worker.learn(call)
            found.append(worker)
            answered.append(call)
        del self._deadlines[:-40]
        self._record(answered)
        return found

    def _pauses(self, worker: Worker) -> bool:
        """Whether the worker leaves its group for a new one, crashes or pauses now."""
        place, group = next((place, group) for place, group in enumerate(self._groups) if worker in group)
        if worker.made >= self._group_calls // self._workers_per_group or worker.names.group != self._name_of(place):
            group.remove(worker)
            if not group:
                self._groups[place] = new = self._new_group(place)
                self._paused += [(0, each) for each in new]
            return True
        if worker.rng.random() < 0.01:
            worker.forget()
        if worker.wants_pause():
            self._paused.append((self.store_time.passed() + self.rng.randrange(2 * self._ttl), worker))
            return True
        return False

    def _resume(self) -> list[Worker]:
        now = self.store_time.passed()
        over = [worker for until, worker in self._paused if until <= now]
        self._paused = [(until, worker) for until, worker in self._paused if until > now]
        return over

    def _new_group(self, place: int) -> list[Worker]:
        self._groups_made += 1
        self._names[place] = f"{self.name}-{self._groups_made}"
        names = Names(self._name_of(place), self._ttl, self._wait_seconds, prefix=self.name)
        made = range(self._workers_per_group)
        return [Worker(f"{self.name}/{self._groups_made}/{each}", names, self.rng) for each in made]

    def _name_of(self, place: int) -> str:
        """The name of the group at a place now."""
        if self._period_seconds is None:
            return self._names[place]
        return f"shared-{place}-{int(time.monotonic() / self._period_seconds)}"
