"""`kill -9` of workers and of the server: acknowledged changes are stored, and the next worker continues."""

import http.client
import random
import threading
from typing import Any

import pytest

from tests.compat.octostore.expect import eventually
from tests.compat.octostore.wire import Answer
from tests.compat.orchestrion.account import Account, register
from tests.compat.orchestrion.expect import claimed, created, task
from tests.faults import worker_process
from tests.http.job_client import fresh, together
from tests.http.replies import done
from tests.http.session_client import begin, resume
from tests.proof_size import sized
from tests.store_inspection import assert_store_is_consistent, events_by_task, events_of

pytestmark = pytest.mark.waits(15)

KILLS = sized(2, 20)
WORKERS = 8
DEAD = (OSError, http.client.HTTPException, AttributeError)
"""The last is what `http.client` makes of a server that dies while the connection is being made."""


# -- the server --------------------------------------------------------------------------------------------------


class Worker:
    """Creates, claims and completes one task after the other, and records the answers."""

    def __init__(self, account: Account, number: int) -> None:
        self.account = account
        self.number = number
        self.made: list[str] = []
        self.finished: dict[str, int] = {}
        self.holding: dict[str, str] = {}
        """The lease id of each task that this one holds, as far as it was told."""
        self.tokens: list[int] = []
        self.steps = 0
        self.in_doubt: tuple[str, str, dict[str, object]] | None = None
        """(Idempotency-Key, path, body) of the request that was never answered."""
        self.error: AssertionError | None = None

    def work(self) -> None:
        try:
            while True:
                self.step()
        except DEAD:
            return
        except AssertionError as error:  # raised again in the thread of the test
            self.error = error

    def step(self) -> None:
        kind = f"worker-{self.number}"
        made = created(self.ask("/v1/tasks", {"type": kind, "payload": {"step": self.steps}}))
        self.made.append(made["id"])
        taken = claimed(self.ask("/v1/tasks/claim", {"type": kind}))
        self.take(taken)
        if self.steps % 5:  # every fifth stays claimed
            self.complete(taken["id"])
        self.steps += 1

    def take(self, taken: dict[str, Any]) -> None:
        self.holding[taken["id"]] = taken["leaseId"]
        self.tokens.append(taken["fencingToken"])

    def complete(self, task_id: str) -> None:
        fields = {"lease_id": self.holding[task_id], "result": {"step": self.steps}}
        task(self.ask(f"/v1/tasks/{task_id}/complete", fields))
        del self.holding[task_id]
        self.finished[task_id] = self.steps

    def ask(self, path: str, body: dict[str, object]) -> Answer:
        self.in_doubt = (fresh(), path, body)
        answer = self.again()
        self.in_doubt = None
        return answer

    def again(self) -> Answer:
        key, path, body = self.in_doubt
        return self.account.with_headers(Idempotency_Key=key).post(path, body)

    def check(self) -> None:
        """Acknowledged changes are stored, and requests with an unknown outcome were applied at most once."""
        if self.in_doubt is not None:
            self.settle()
        for task_id in self.made[-20:]:
            seen = done(self.account.read_task(task_id))
            assert (seen["status"] == "completed") == (task_id in self.finished), seen
            if task_id in self.finished:
                assert seen["result"] == {"step": self.finished[task_id]}
        for task_id, lease_id in self.holding.items():
            done(self.account.do("heartbeat", task_id, lease_id=lease_id))

    def settle(self) -> None:
        body = done(self.again(), 201 if self.in_doubt[1] == "/v1/tasks" else 200)
        assert self.again().json["id"] == body["id"], "the second time nothing happened"
        if body["status"] == "pending":
            done(self.account.do("cancel", body["id"]))
        elif body["status"] == "claimed":
            self.take(body)
        else:
            del self.holding[body["id"]]
            self.finished[body["id"]] = body["result"]["step"]
        self.in_doubt = None


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(new_store_url, new_server):
    url = new_store_url()
    server = new_server(url).start()
    account = register(server.anyone)
    workers = [Worker(account, number) for number in range(WORKERS)]
    rng = random.Random(4127)
    for _ in range(KILLS):
        load_until_killed(server, workers, WORKERS * rng.randint(3, 8))
        server.start()
        together(*[worker.check for worker in workers])
    total = done(account.get("/v1/tasks/counts"))["total"]
    assert total["completed"] == sum(len(worker.finished) for worker in workers)
    assert total["claimed"] == sum(len(worker.holding) for worker in workers)
    tokens = [token for worker in workers for token in worker.tokens]
    assert len(set(tokens)) == len(tokens), "no token was granted twice"
    assert all(worker.tokens == sorted(worker.tokens) for worker in workers), "a later grant has a larger token"
    server.kill()
    assert_store_is_consistent(url)
    records = events_by_task(events_of(url, account.id))
    for worker in workers:
        for task_id in worker.finished:
            assert [event.kind for event in records[task_id]] == ["task.created", "task.claimed", "task.completed"]


def load_until_killed(server, workers, steps):
    """Let all workers run, and kill the server after a number of steps."""
    enough = sum(worker.steps for worker in workers) + steps
    threads = [threading.Thread(target=worker.work) for worker in workers]
    for thread in threads:
        thread.start()
    eventually(lambda: sum(worker.steps for worker in workers), lambda seen: seen >= enough, within=60, every=0.002)
    server.kill()
    for thread in threads:
        thread.join()
    for worker in workers:
        if worker.error is not None:
            raise worker.error


# -- workers -----------------------------------------------------------------------------------------------------


def test_the_successor_of_a_killed_worker_continues_from_its_last_checkpoint(
    tmp_path, new_postgres_database, new_server
):
    """On both stores at once, so that the test waits only once."""
    urls = [f"sqlite:///{tmp_path}/x.db", new_postgres_database()]
    accounts = [register(new_server(url).start().anyone) for url in urls]
    together(*[lambda account=account: assert_continued(account) for account in accounts])


def assert_continued(account):
    made = created(account.create())
    page = killed_after_a_page(account)
    successor = claimed(account.claim(worker_id="successor", wait_seconds=worker_process.TTL_SECONDS + 5))
    previous = successor["previousAttempt"]
    assert (successor["id"], successor["attemptCount"]) == (made["id"], 2)
    assert (previous["outcome"], previous["worker"]) == ("expired", "doomed/0")
    assert page <= previous["checkpoint"]["page"] <= page + 1, "one may have been written that nobody heard of"
    done(account.complete(successor["id"], lease_id=successor["leaseId"]))


def killed_after_a_page(account):
    """Kill a worker after it reported its second page; the last reported page."""
    doomed = worker_process.start(account.port, account.token, "doomed", 1)
    records = []
    with doomed.stdout as lines:
        for line in lines:
            records.append(line.split())
            if records[-1][0] == "checkpoint" and records[-1][2] == "2":
                doomed.kill()
    doomed.wait()
    return int(records[-1][2])


def test_a_restarted_worker_with_its_secret_resumes_at_once(new_store_url, new_server):
    server = new_server(new_store_url()).start()
    account = register(server.anyone)
    session = begin(account)
    mine = claimed(account.do("claim", created(account.create())["id"], session_id=session["session_id"]))
    done(account.do("heartbeat", mine["id"], lease_id=mine["leaseId"], checkpoint={"page": 5}))
    server.kill()
    server.start()
    (again,) = resume(account, session)["tasks"]
    assert (again["id"], again["checkpoint"]) == (mine["id"], {"page": 5})
    done(account.do("complete", again["id"], lease_id=again["leaseId"]))
