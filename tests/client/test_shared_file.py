"""Two programs with the engine inside and a server, all on one SQLite file: one winner each time, whoever is killed."""

import json
import os
import subprocess
import sys
import threading

import holdfast
from tests.client.ways import KEY, url_of
from tests.support import wait_until
from tests.trouble.books import assert_books_balance
from tests.trouble.scale import sized

ROUNDS = sized(9, 100)
PROGRAM = """
import json, sys, holdfast
client = holdfast.open(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    operation, arguments = json.loads(line)
    print(json.dumps(client.call(operation, **arguments)), flush=True)
"""


class Program:
    """An agent with no server of its own."""

    def __init__(self, path):
        self.path = path
        self.start()

    def start(self):
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
        return json.loads(self.process.stdout.readline())

    def kill(self):
        self.process.kill()
        self.process.communicate()


class Served:
    """An agent of the server."""

    def __init__(self, server):
        self.server = server
        self.start()

    def call(self, operation, **arguments):
        return self.client.call(operation, **arguments)

    def kill(self):
        self.client.close()
        self.server.kill()

    def start(self):
        self.server.start()
        self.client = holdfast.Client(url_of(self.server), KEY)


def race(agents, name):
    """All claim at the same moment; what each was told."""
    told = [None] * len(agents)
    gate = threading.Barrier(len(agents))

    def run(place):
        gate.wait()
        told[place] = agents[place].call("claim_job", job_id=name, owner=f"agent-{place}", ttl_seconds=3)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(agents))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return told


def test_programs_and_a_server_on_one_file_have_one_winner_each_round(tmp_path, new_server, name):
    path = str(tmp_path / "x.db")
    agents = [Program(path), Program(path), Served(new_server(f"sqlite:///{path}"))]
    tokens, killed = [], set()
    try:
        for number in range(ROUNDS):
            told = race(agents, name)
            winners = [place for place, answer in enumerate(told) if answer["status"] == "claimed"]
            assert len(winners) == 1, told
            (winner,) = winners
            owner = f"agent-{winner}"
            assert {answer["owner"] for answer in told} == {owner}
            tokens.append(told[winner]["token"])
            if number % 3 == 0 or winner not in killed:
                killed.add(winner)
                agents[winner].kill()
                agents[winner].start()
            else:
                agents[winner].call("release_job", job_id=name, lease_id=told[winner]["lease_id"])
            wait_until(lambda: agents[0].call("get_job_owner", job_id=name)["status"] == "free", 20)
    finally:
        for agent in agents:
            agent.kill()
    assert tokens == sorted(set(tokens))
    assert killed
    assert_books_balance(f"sqlite:///{path}")
