"""Two embedded programs and a server on one SQLite file: one winner in each round, also when one of them is killed."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

import holdfast
from holdfast.client.errors import LeaseLost, OutcomeUnknown, Unreachable
from tests.client.ways import KEY, url_of
from tests.proof_size import sized
from tests.store_inspection import assert_store_is_consistent
from tests.support import wait_until

pytestmark = pytest.mark.waits(15)

ROUNDS = sized(4, 100)
KILLS = sized(2, 60)
PROGRAM = """
import json, sys, holdfast
client = holdfast.open(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    operation, arguments = json.loads(line)
    print(json.dumps(client.call(operation, **arguments)), flush=True)
"""


class Program:
    """An agent in embedded mode, in its own process."""

    def __init__(self, path):
        self.path = path
        self.process = None
        self.start()

    def start(self):
        self.close()
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, self.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ,
        )
        assert self.process.stdout.readline() == "ready\n"

    def call(self, operation, **arguments):
        self.process.stdin.write(json.dumps([operation, arguments]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise BrokenPipeError
        return json.loads(answer)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process is not None:
            self.kill()
            with suppress(BrokenPipeError):  # a call that was not sent before it died
                self.process.stdin.close()
            self.process.stdout.close()


class Served:
    """An agent that uses the server."""

    def __init__(self, server):
        self.server = server
        self.client = None
        self.start()

    def start(self):
        self.close()
        self.server.start()
        self.client = holdfast.Client(url_of(self.server), KEY, deadline=5)

    def call(self, operation, **arguments):
        return self.client.call(operation, **arguments)

    def kill(self):
        self.server.kill()

    def close(self):
        if self.client is not None:
            self.kill()
            self.client.close()


def race(agents, name):
    """Let all claim at the same moment; their answers."""
    answers = [None] * len(agents)
    gate = threading.Barrier(len(agents))

    def run(index):
        gate.wait()
        answers[index] = agents[index].call("claim_job", job_id=name, owner=f"agent-{index}", ttl_seconds=3)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(agents))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return answers


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "x.db")


@pytest.fixture
def agents(path, new_server):
    """Two programs and a server on one file."""
    found = []
    try:
        found += [Program(path), Program(path)]
        found.append(Served(new_server(f"sqlite:///{path}")))
        yield found
    finally:
        for agent in found:
            agent.close()


def test_programs_and_a_server_on_one_file_have_one_winner_each_round(agents, path, name):
    tokens, killed = [], set()
    for number in range(ROUNDS):
        # A name that is new to the store races differently from one with a row to lock.
        job = f"{name}-{number}" if number % 3 == 1 else name
        answers = race(agents, job)
        winners = [index for index, answer in enumerate(answers) if answer["status"] == "claimed"]
        assert len(winners) == 1, answers
        (winner,) = winners
        assert {answer["owner"] for answer in answers} == {f"agent-{winner}"}
        tokens.append(answers[winner]["token"])
        lease_id = answers[winner]["lease_id"]
        if number % 3 == 0 or winner not in killed:
            killed.add(winner)
            agents[winner].kill()
            agents[winner].start()
        else:
            agents[winner].call("release_job", job_id=job, lease_id=lease_id)
        wait_until(lambda job=job: agents[0].call("get_job_owner", job_id=job)["status"] == "free", 20)
        if number % 3 == 2:  # the old lease is refused, whichever agent sends it
            with pytest.raises(LeaseLost):
                agents[2].call("heartbeat_job", job_id=job, lease_id=lease_id)
    assert tokens == sorted(set(tokens))
    assert killed
    assert_store_is_consistent(f"sqlite:///{path}")


class Busy:
    """Claims, renews and releases through one agent, and remembers the answers."""

    def __init__(self, agent, number):
        self.agent = agent
        self.rng = random.Random(number)
        self.jobs = {f"busy-{number}/{index}": None for index in range(12)}
        """Each job's lease id as last acknowledged; None when it is free."""
        self.grants = []
        """(token, when it was asked for, when the answer was there)"""
        self.in_doubt = None
        self.error = None

    def work(self, stop):
        try:
            while not stop.is_set():
                self.step(self.rng.choice(list(self.jobs)))
        except (BrokenPipeError, Unreachable, OutcomeUnknown):
            return
        except Exception as error:
            self.error = error

    def step(self, job):
        lease_id, self.in_doubt = self.jobs[job], job
        if lease_id is None:
            asked = time.monotonic()
            lease = self.agent.call("claim_job", job_id=job, owner="busy", ttl_seconds=3600)
            self.grants.append((lease["token"], asked, time.monotonic()))
            self.jobs[job] = lease["lease_id"]
        elif self.rng.random() < 0.2:
            self.agent.call("heartbeat_job", job_id=job, lease_id=lease_id)
        else:
            self.agent.call("release_job", job_id=job, lease_id=lease_id)
            self.jobs[job] = None
        self.in_doubt = None

    def check(self):
        """Acknowledged changes are stored; names with an unknown outcome are not used again."""
        assert self.error is None, self.error
        self.jobs.pop(self.in_doubt, None)
        for job, lease_id in self.jobs.items():
            if lease_id is None:
                assert self.agent.call("get_job_owner", job_id=job)["status"] == "free"
            else:
                self.agent.call("heartbeat_job", job_id=job, lease_id=lease_id)
        if self.in_doubt is not None:
            self.jobs[f"{self.in_doubt}-{len(self.grants)}"] = None
        self.in_doubt = None


def test_nothing_acknowledged_is_lost_if_a_program_or_the_server_is_killed(agents, path):
    crew = [Busy(agent, number) for number, agent in enumerate(agents)]
    rng = random.Random(4127)
    for number in range(KILLS):
        stop = threading.Event()
        threads = [threading.Thread(target=busy.work, args=(stop,)) for busy in crew]
        for thread in threads:
            thread.start()
        wait_for_a_grant_each(crew)
        time.sleep(rng.uniform(0, 0.1))
        agents[number % len(agents)].kill()
        stop.set()
        for thread in threads:
            thread.join(40)
        agents[number % len(agents)].start()
        for busy in crew:
            busy.check()
    assert_tokens_follow_time([grant for busy in crew for grant in busy.grants])
    for agent in agents:
        agent.kill()
    assert_store_is_consistent(f"sqlite:///{path}")


def wait_for_a_grant_each(crew):
    before = [len(busy.grants) for busy in crew]
    wait_until(lambda: all(len(busy.grants) > count for busy, count in zip(crew, before, strict=True)), 20)


def assert_tokens_follow_time(grants):
    """Each token was granted once, and no token is smaller than one whose answer came before its request."""
    tokens = [token for token, _, _ in grants]
    assert len(tokens) == len(set(tokens))
    last_asked = 0.0
    for _, asked, answered in sorted(grants):
        assert answered >= last_asked
        last_asked = max(last_asked, asked)
