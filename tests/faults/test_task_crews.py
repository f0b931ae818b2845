"""Thirty-two workers on two servers, killed and paused at random: each task is done once, by its newest holder."""

import json
import random
import signal
import threading
import time

import pytest

from tests.compat.octostore.expect import eventually
from tests.compat.orchestrion.account import Account, register
from tests.faults import worker_process
from tests.http.replies import done
from tests.proof_size import sized
from tests.store_inspection import assert_store_is_consistent, events_by_task, events_of

pytestmark = pytest.mark.waits(14)

TASKS = sized(100, 20_000)
KILLS = sized(1, 40)
CREWS, WORKERS = 4, 8
PATIENCE_SECONDS = sized(60, 1_800)
ANSWER_SECONDS = 0.1
"""Within this time the servers have answered the requests of a crew that was suspended."""


class Crew:
    """One process of workers, and its output."""

    def __init__(self, account, port, name, workers):
        self.name = name
        self.process = worker_process.start(port, account.token, name, workers)
        self.reports = []
        self.reading = threading.Thread(target=self.read)
        self.reading.start()

    def read(self):
        with self.process.stdout as lines:
            for line in lines:
                self.reports.append(line.split())

    def tell(self, what):
        self.process.send_signal(what)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reading.join()


@pytest.fixture
def crews(new_postgres_database, new_server):
    """Two servers, a queue of tasks, and worker processes on both."""
    works = Works(new_postgres_database(), new_server)
    yield works
    for each in works.all:
        each.end()


class Works:
    """Servers, tasks, running crews and killed crews."""

    tasks, workers = TASKS, WORKERS

    def __init__(self, url, new_server):
        self.url = url
        servers = [new_server(url).start() for _ in range(2)]
        self.ports = [server.port for server in servers]
        self.account = register(servers[0].anyone)
        self.all = []
        sizes = [min(1000, self.tasks - place) for place in range(0, self.tasks, 1000)]
        self.made = [task for size in sizes for task in self.make(size)]

    def make(self, count):
        items = [{"op": "create", "type": "work", "payload": {}, "maxAttempts": 10}] * count
        results = done(self.account.post("/v1/tasks/batch", {"items": items}))["results"]
        return [result["task"]["id"] for result in results]

    def start(self):
        number = len(self.all)
        self.all.append(Crew(self.account, self.ports[number % 2], f"crew-{number}", self.workers))
        return self.all[-1]

    def completed(self):
        return done(self.account.get("/v1/tasks/counts"))["total"]["completed"]

    def wait_for(self, count):
        eventually(self.completed, lambda seen: seen >= count, within=PATIENCE_SECONDS)

    def holding(self, crews):
        """Those of the crews that hold a task: one that has just started holds none."""
        held = done(self.account.get("/v1/tasks?status=claimed&limit=100"))["tasks"]
        names = {task["claimedBy"].partition("/")[0] for task in held}
        return [crew for crew in crews if crew.name in names]

    def wait_until_holding(self, crews):
        return eventually(lambda: self.holding(crews), bool, within=PATIENCE_SECONDS)

    def suspend(self, crew):
        """Suspend a crew while it holds a task."""

        def is_holding():
            self.wait_until_holding([crew])
            crew.tell(signal.SIGSTOP)
            time.sleep(ANSWER_SECONDS)
            if self.holding([crew]):
                return True
            crew.tell(signal.SIGCONT)
            return False

        eventually(is_holding, bool, within=PATIENCE_SECONDS)

    def wait_until_given_up(self, lost):
        """Wait until the leases of a suspended crew have expired."""
        after, reports = 0, []
        until = time.monotonic() + PATIENCE_SECONDS
        while not any(event["data"]["ended"]["worker"].startswith(f"{lost.name}/") for event in reports):
            assert time.monotonic() < until, "the crew held no task"
            page = done(self.account.get(f"/v1/events?kind=task.expired&after={after}&wait_seconds=15"))
            after, reports = page["nextCursor"], page["events"]

    def recover_until_all_done(self):
        """Run recovery on both servers until all tasks are done; the recovered (request, subject)."""
        reports = []

        def recover():
            for port in self.ports:
                answer = Account(port, self.account.headers).post("/v1/recover")
                body = done(answer)
                subjects = [f"session:{name}" for name in body["sessions"]]
                subjects += [f"task:{task['id']}" for task in body["tasks"]]
                reports.extend((answer.header("X-Request-Id"), subject) for subject in subjects)
            return self.completed()

        eventually(recover, lambda seen: seen == TASKS, within=PATIENCE_SECONDS, every=0.01)
        return reports


def test_each_task_is_completed_once_by_the_holder_of_its_newest_token(crews):
    rng = random.Random(4127)
    working = [crews.start() for _ in range(CREWS)]
    crews.wait_for(TASKS // 10)
    paused = working.pop()
    crews.suspend(paused)
    for kill in range(1, KILLS + 1):
        crews.wait_for(TASKS * kill // (KILLS + 2))
        doomed = rng.choice(crews.wait_until_holding(working))
        working.remove(doomed)
        doomed.end()
        working.append(crews.start())
    crews.wait_until_given_up(paused)
    paused.tell(signal.SIGCONT)
    recovered = crews.recover_until_all_done()
    eventually(lambda: [reports for reports in paused.reports if reports[0] == "refused"], bool, within=10)
    for each in crews.all:
        each.end()
    log = events_of(crews.url, crews.account.id)
    assert_all_done_once(crews, events_by_task(log))
    requests = {request for request, _ in recovered}
    by_request = [(event.request_id, event.subject) for event in log if event.request_id in requests]
    assert sorted(recovered) == sorted(by_request), "what was recovered on request was told once"
    assert_store_is_consistent(crews.url)


def assert_all_done_once(crews, reports):
    total = done(crews.account.get("/v1/tasks/counts"))["total"]
    assert (total["completed"], sum(total.values())) == (TASKS, TASKS)
    assert reports.keys() == set(crews.made)
    acknowledged = [
        (words[1], int(words[2])) for each in crews.all for words in each.reports if words[0] == "completed"
    ]
    newest = {}
    for task_id, history in reports.items():
        kinds = [event.kind for event in history]
        assert kinds.count("task.completed") == 1
        assert kinds[-1] == "task.completed"
        tokens = [json.loads(event.data)["token"] for event in history if event.kind == "task.claimed"]
        assert tokens == sorted(set(tokens))
        newest[task_id] = tokens[-1]
    assert len({task_id for task_id, _ in acknowledged}) == len(acknowledged), "nobody was told twice"
    assert [pair for pair in acknowledged if newest[pair[0]] != pair[1]] == []
    again = [history for history in reports.values() if any(event.kind == "task.expired" for event in history)]
    assert len(again) >= KILLS, "the dead had held tasks, and others have done them"
