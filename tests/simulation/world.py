"""One simulated world, made from a seed: servers, their database, clients, the network between them, and faults.

The same seed always gives the same run. Everything that happens is one of a few actions; random numbers choose which
one is next, so requests, commits, expiries and crashes meet in every order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.core.question import OPEN, Question
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import DEAD, Task
from holdfast.engine.outages import OUTAGE_SECONDS
from holdfast.engine.server_heartbeat import BEAT_SECONDS
from tests.simulation.activities import (
    ElectionActivity,
    EphemeralLockActivity,
    JobActivity,
    LockActivity,
    SessionActivity,
)
from tests.simulation.checker import Checker
from tests.simulation.clients import TTL, Activity, Client
from tests.simulation.database import Database
from tests.simulation.dispatcher import Receiver
from tests.simulation.faults import Faults
from tests.simulation.network import Network
from tests.simulation.request import Request
from tests.simulation.reservation_activities import ReservationActivity
from tests.simulation.server import Server, ServerCrashed
from tests.simulation.supervised_tasks import SupervisedTaskActivity
from tests.simulation.task_activities import TaskActivity, WebhookActivity
from tests.simulation.virtual_time import Runtime
from tests.support import START

STEPS = (6, 20)
ACTIVITIES: tuple[type[Activity], ...] = (
    JobActivity, LockActivity, ElectionActivity, EphemeralLockActivity, SessionActivity, TaskActivity,
    SupervisedTaskActivity, ReservationActivity,
)  # fmt: skip
OUTAGE = int((OUTAGE_SECONDS + BEAT_SECONDS + 0.5) * SECOND)
"""A service that did nothing for longer than this was interrupted: a pass of the sweep may leave out its heartbeat."""


class BrokenPromise(AssertionError):
    """The simulation saw something that must never happen."""


class World:
    """Runs one seed."""

    def __init__(
        self, seed: int, runtime: Runtime, note: Callable[[str], None] | None = None, only: type[Activity] | None = None
    ) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.time = runtime.time
        self.time.now = START
        runtime.report, runtime.wait_for = self.fail, self.wait_for
        self._note = note
        self.is_traced = note is not None
        self.problems: list[str] = []
        self.seen: Counter[str] = Counter()
        """How often each interesting thing happened: a run in which nothing happens proves nothing."""
        self.faults = Faults(self.random)
        self.database = Database(self)
        self.requests: dict[str, Request] = {}
        self.known_tasks: set[str] = set()
        self.job_offers: list[tuple[str, str]] = []
        self.task_offers: list[tuple[str, str]] = []
        """(name or id, code) of every offer whose giver has passed its code on."""
        self.receiver = Receiver()
        self.checker = Checker(self)
        self.network = Network(self)
        self.servers: list[Server] = []
        self._running: list[Server] = []
        self.served_at: Instant = START
        self.has_stopped = False
        """Whether a server stopped on purpose and none has recorded since that it runs: then there is no grace."""
        self.last_gap: tuple[Instant, Instant] | None = None
        """The last time without any server that could renew a lease: from when until when."""
        self.server_count = self.random.choice([1, 2, 2, 3])
        self.clients = [Client(self, number) for number in range(self.random.choice([2, 3, 4]))]
        self.has_webhooks = self.random.random() < 0.25
        self.supervision = self.random.choice([{"questions"}, {"limits"}, {"questions", "limits"}])
        """What people do where their activity is chosen."""
        kinds = self.random.sample(ACTIVITIES, self.random.choice([1, 1, 2, 3]))
        self._give_activities(kinds if only is None else [only])

    def _give_activities(self, chosen: Sequence[type[Activity]]) -> None:
        for client in self.clients:
            client.activities = [kind(client) for kind in chosen]
            session = next((each for each in client.activities if isinstance(each, SessionActivity)), None)
            for activity in client.activities:
                if isinstance(activity, TaskActivity | ReservationActivity) and session is not None:
                    activity.join(session)
        if self.has_webhooks:
            self.clients[0].activities.append(WebhookActivity(self.clients[0]))

    # -- what others report ------------------------------------------------------------------------------------

    def fail(self, problem: str) -> None:
        """Record a broken promise. It is raised after the action: the engine would catch it here."""
        self.problems.append(problem)
        self.note("checker", problem)

    def count(self, what: str) -> None:
        self.seen[what] += 1

    def note(self, who: Any, what: str) -> None:
        """Add a line to the trace."""
        if self._note is not None:
            self._note(f"{self.time.monotonic():12.6f} s  {who}: {what}")

    def dead_letters(self) -> list[str]:
        """What an operator would find in the list of dead letters."""
        rows = self.database.indexes.tables.get(Task.table, {}).values()
        return [row.id for row in rows if isinstance(row, Task) and row.state == DEAD]

    def open_questions(self) -> list[Question]:
        """What a person would find in the list of questions."""
        rows = self.database.indexes.tables.get(Question.table, {}).values()
        return [row for row in rows if isinstance(row, Question) and row.state == OPEN]

    def is_cut_off(self, server: Server) -> bool:
        return server.cut_off_until > self.time.now

    def served(self) -> None:
        """A server has finished something: an interruption, if there was one, is over."""
        if self.time.now - self.served_at > OUTAGE and not self.has_stopped:
            self.last_gap = (self.served_at, self.time.now)
            self.note("world", f"the service was interrupted for {(self.time.now - self.served_at) / SECOND:.1f} s")
        self.served_at = self.time.now

    # -- servers -----------------------------------------------------------------------------------------------

    def server(self, number: int) -> Server | None:
        return next((server for server in self.servers if server.number == number), None)

    def start_server(self, number: int) -> None:
        serving = number == 0 or self.random.random() < 0.8
        server = Server(self, number, serving=serving)
        self.servers.append(server)
        self.note(server, "starts")
        self.run_as(server, server.start)

    def is_running(self, server: Server) -> bool:
        return server.is_alive and server.paused_until <= self.time.now

    def crash(self, server: Server) -> None:
        """End a process. Its clients notice it at once, or never."""
        if server.is_alive:
            self.note(server, "crashes")
            self.count("crash")
            server.is_alive = False
            self.servers.remove(server)
            for request in self.requests.values():
                if request.ticket is not None and request.ticket.sink is server and self.random.random() < 0.5:
                    request.operation.must_retry = True

    def stop(self, server: Server) -> None:
        """End a process on purpose."""
        self.run_as(server, server.stop)
        if server.is_alive:
            self.note(server, "stops")
            server.is_alive = False
            self.servers.remove(server)

    def let_others_run(self, server: Server, seconds: float) -> None:
        """Time passes while a server waits; the others write their heartbeats meanwhile."""
        self.time.now += int(seconds * SECOND)
        for other in self.idle_servers():
            if other is not server and other.is_ready and not other.in_background:
                self.run_as(other, other.run_sweep)

    def run_as(self, server: Server, action: Callable[[], Any]) -> None:
        """Run one of a server's threads until it waits or its process ends."""
        self._running.append(server)
        try:
            action()
        except ServerCrashed:
            pass
        finally:
            self._running.pop()

    def idle_servers(self) -> list[Server]:
        """Servers whose lane could run a batch now."""
        return [server for server in self.servers if self.is_running(server) and not server.in_transaction]

    def wait_for(self, is_done: Callable[[], bool]) -> None:
        """The sweep of the running server waits for the results of its commands."""
        server = self._running[-1]
        tries = 0
        while not is_done():
            server.check_alive()
            tries += 1
            if tries > 50:
                self.fail(f"{server} waits for a result of its lane that never comes")
                raise ServerCrashed
            if tries > 1:
                self.time.now += SECOND  # a row is locked: its command is tried again for seconds
            elif self.faults.overlaps and self.random.random() < 0.3:
                self.interleave(server)
            server.run_lane()

    def interleave(self, server: Server) -> None:
        """Something else happens while a server is in the middle of something; it may also crash there."""
        chance = self.random.random()
        if chance > 0.5:
            return
        if self.faults.happens(2 * self.faults.crash):
            self.crash(server)
        elif len(self._running) < 4 and (others := [each for each in self.idle_servers() if each is not server]):
            other = self.random.choice(others)
            self.network.deliver_requests(0.5)
            if chance < 0.1 and other.is_ready and not other.in_background:
                self.run_as(other, other.run_sweep)
            else:
                self.run_as(other, other.run_lane)
            server.run_signals()
        if chance < 0.05 and self.faults.at_commit:
            self.time.now += self.random.randrange(TTL // 4)
        server.check_alive()

    # -- the run -----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run with faults, then without: then everything must become free, done and delivered."""
        for number in range(self.server_count):
            self.start_server(number)
        for _ in range(self.random.randint(*STEPS)):
            self.step()
            self.check()
        self.checker.settle()
        self.check()
        self.seen["delivered again"] += self.receiver.repeated

    def check(self) -> None:
        if self.problems:
            raise BrokenPromise(self.problems[0])

    def step(self) -> None:
        """A moment in which some clients act, some messages arrive and some threads run."""
        self._pass_time()
        self._let_faults_happen()
        for client in self.clients:
            client.step()
        self.network.deliver_requests()
        for server in self.random.sample(self.servers, len(self.servers)):
            if self.is_running(server) and server.is_ready:
                self._run_threads(server)
        self.network.deliver_answers()

    def _run_threads(self, server: Server) -> None:
        chance = self.random.random()
        self.run_as(server, server.run_signals)
        if chance < 0.35:
            self.run_as(server, server.run_sweep)
        if server.is_alive and server.has_work() and chance < 0.9:
            self.run_as(server, server.run_lane)
        if server.is_alive and server.is_sweep_late():
            self.run_as(server, server.run_sweep)
        if server.is_alive and chance > 0.95:
            self.run_as(server, server.run_cleanup)
        if self.has_webhooks and server.is_alive and server.serving and not self.is_cut_off(server):
            server.dispatcher.run()

    def _pass_time(self) -> None:
        chance, deadline = self.random.random(), self.database.indexes.deadlines.lowest()
        if chance < 0.25 and deadline is not None and deadline > self.time.now:
            self.time.now = max(deadline - self.random.randint(0, 1), self.time.now)  # just before it, or just then
        elif chance < 0.7:
            self.time.now += self.random.randrange(TTL // 4)
        elif chance > 0.985:
            self.time.now += self.random.randrange(60 * SECOND)

    def _let_faults_happen(self) -> None:
        faults, now = self.faults, self.time.now
        for number in range(self.server_count):
            if self.server(number) is None and self.random.random() < 0.4:
                self.start_server(number)
        for server in list(self.servers):
            if faults.happens(faults.crash):
                self.crash(server)
            if faults.happens(faults.server_pause):
                server.paused_until = now + self.random.randrange(2 * TTL)
                self.count("suspended server")
                self.note(server, "is suspended")
            elif faults.happens(faults.clean_stop):
                self.stop(server)
        if faults.happens(faults.outage):
            until = now + self.random.randrange(2 * TTL)
            cut_off = self.servers if self.random.random() < 0.5 else self.servers[:1]
            for server in cut_off:
                server.cut_off_until = until
            self.count("outage")
            self.note("world", f"the database cannot be reached by {', '.join(map(str, cut_off))}")
        if faults.happens(faults.clock_step):
            self.database.wall_step += self.random.randint(-60, 60) * SECOND
            self.count("step of the wall clock")
            self.note("world", f"the wall clock is off by {self.database.wall_step // SECOND} s")
