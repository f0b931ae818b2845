"""Agents that compete for one job over unreliable connections, with a server that is paused, killed and restarted."""

import itertools
import random
import socket
import threading
import time
from collections import Counter
from contextlib import contextmanager
from signal import SIGCONT, SIGSTOP

import holdfast
from holdfast.client.errors import Held, HoldfastError, LeaseLost
from holdfast.client.leases import clock
from tests.client.proxy import CUT, HANG, LOSE, PASS, TOGETHER, between, deck
from tests.client.ways import KEY
from tests.support import wait_until

KILL, DOZE, SLEEP, NAMELESS, ALONE = "kill", "doze", "sleep", "nameless", "alone"
"""Kill the server and start it again; pause it for less than the TTL, or for more; let no name be found; cut the holder
off while the others are well."""
TROUBLES = (KILL, DOZE, SLEEP, NAMELESS, ALONE)
FATES = {PASS: 14, LOSE: 3, CUT: 2, HANG: 1}
SORTS = {*TROUBLES, LOSE, CUT, HANG, TOGETHER}
AGENTS = 3


class Names:
    """Resolver for names under `.test`: they are this machine, and at times no name resolves."""

    def __init__(self):
        self.gone = False
        self.in_vain = 0
        self._real = socket.getaddrinfo

    def look_up(self, host, *more, **named):
        if not str(host).endswith(".test"):
            return self._real(host, *more, **named)
        if self.gone:
            self.in_vain += 1
            raise socket.gaierror(socket.EAI_AGAIN, "no name server answers")
        return self._real("127.0.0.1", *more, **named)


class Period:
    """One agent's ownership, as far as that agent could know."""

    def __init__(self, agent, token):
        self.agent = agent
        self.token = token
        self.granted = clock.now()
        self.proved = 0.0
        """When the last check that went well was begun."""
        self.clings = False
        """Whether it goes on until it is lost."""
        self.end = "open"


class Fleet:
    """The agents, their connections, and the answers they received."""

    def __init__(self, server, name, seed, names):
        self.server, self.name, self.seed, self.names = server, name, seed, names
        self.thrown = random.Random(seed)
        self.stop, self.cling = threading.Event(), threading.Event()
        self.fate = deck(seed, FATES)
        self.proxies = {}
        self.periods = []
        self.happened = Counter()
        self.numbers = itertools.count()
        self.made, self.completed = set(), {}
        self.errors = []

    @contextmanager
    def at_work(self):
        threads = [threading.Thread(target=self.agent, args=(number,)) for number in range(AGENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stop.set()
            for thread in threads:
                thread.join(40)
        assert not self.errors, self.errors

    def agent(self, number):
        with between(self.server, self.fate) as proxy:
            self.proxies[number] = proxy
            url = f"http://agent-{number}.test:{proxy.port}"
            with holdfast.Client(url, KEY, timeout=1, deadline=2) as client:
                while not self.stop.is_set():
                    self.turn(client, number)

    def turn(self, client, number):
        """Hold the job, and one of its own, with which it is renewed."""
        period, own = None, f"{self.name}/{number}"
        try:
            with client.job(own, own, ttl=1, wait=1), client.job(self.name, f"agent-{number}", ttl=1, wait=1) as job:
                period = Period(number, job.token)
                self.periods.append(period)
                self.hold(job, period)
                self.act(client)
            period.end = "left"
        except LeaseLost:
            self.ends(period, "lost")
        except Held:
            self.ends(period, "held")
        except HoldfastError:
            self.ends(period, "unknown")
        except Exception as error:
            self.errors.append(error)
            self.stop.set()

    def ends(self, period, how):
        self.happened[how] += 1
        if period is not None:
            period.end = how

    def hold(self, job, period):
        """Work for a while; a stubborn agent works until it is stopped."""
        until = time.monotonic() + random.Random(f"{self.seed}{job.token}").uniform(0.1, 2.0)
        while time.monotonic() < until or period.clings:
            period.clings = self.cling.is_set()
            before = clock.now()
            job.check()
            period.proved = before
            time.sleep(0.005)

    def act(self, client):
        """Make a task, and do one: effects that a repeated request must not have twice."""
        number = next(self.numbers)
        client.create_task(self.name, {"n": number})
        self.made.add(number)
        task = client.claim_task(type=self.name, worker_id=str(number))
        if task["task"] is not None:
            client.complete_task(task["id"], lease_id=task["leaseId"], result={"by": number})
            self.completed.setdefault(task["id"], []).append(number)

    def trouble(self, times):
        """Each sort of trouble once in some order, then some more of them by rng."""
        sorts = [*self.thrown.sample(TROUBLES, len(TROUBLES)), *self.thrown.choices(TROUBLES, k=times)]
        for sort in sorts[:times]:
            time.sleep(self.thrown.uniform(0.3, 1.0))
            getattr(self, sort)()
            self.happened[sort] += 1

    def kill(self):
        self.server.kill()
        self.server.start()

    def doze(self):
        self.pause(self.thrown.uniform(0.2, 0.8))

    def sleep(self):
        """Somebody holds the job and clings to it while the server sleeps for longer than the TTL."""
        holder = self.clinging_holder()
        self.pause(self.thrown.uniform(1.2, 2.0))
        wait_until(lambda: holder.end == "lost", 30)
        self.cling.clear()

    def alone(self):
        """No request of the holder's arrives, and it clings to the job, until another has it."""
        holder = self.clinging_holder()
        proxy = self.proxies[holder.agent]
        proxy.fate = lambda: CUT
        wait_until(lambda: any(period.token > holder.token for period in list(self.periods)), 30)
        proxy.fate = self.fate
        wait_until(lambda: holder.end == "lost", 30)
        self.cling.clear()

    def clinging_holder(self):
        self.cling.set()
        found = []

        def look():
            found[:] = [period for period in list(self.periods) if period.clings and period.end == "open"]
            return found

        wait_until(look, 30)
        return found[-1]

    def pause(self, seconds):
        self.server.process.send_signal(SIGSTOP)
        time.sleep(seconds)
        self.server.process.send_signal(SIGCONT)

    def nameless(self):
        """Connections end and names do not resolve, until one lookup has failed."""
        before = self.names.in_vain
        self.names.gone = True
        for proxy in self.proxies.values():
            proxy.hang_up()
        wait_until(lambda: self.names.in_vain > before, 30)
        time.sleep(self.thrown.uniform(0.2, 1.5))
        self.names.gone = False

    def sorts(self):
        """How often each sort of fault came about."""
        return self.happened + sum((proxy.happened for proxy in self.proxies.values()), Counter())
