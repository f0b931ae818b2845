"""`kill -9` under load: every acknowledged change is stored, and no token is granted twice."""

import http.client
import random
import threading
import time

from tests.http.job_client import Agent, agent, claimed, fresh, lost, ok, root, together
from tests.proof_size import sized
from tests.store_inspection import assert_store_is_consistent, events_of

KILLS = sized(2, 20)
WORKERS = 8
DEAD = (OSError, http.client.HTTPException)


class Worker:
    """Claims, renews and releases one job after the other, and records the answers."""

    def __init__(self, caller: Agent, number: int) -> None:
        self.caller = caller
        self.number = number
        self.random = random.Random(number)
        self.jobs = {fresh(f"w{number}"): None for _ in range(4)}
        """Each job's lease as last acknowledged; None when it is free."""
        self.tokens: list[int] = []
        self.done = 0
        self.error: AssertionError | None = None
        self.in_doubt: tuple[str, str] | None = None
        """(job, verb) of the request that was never answered."""

    def work(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                self.step(self.random.choice(list(self.jobs)))
        except DEAD:
            return
        except AssertionError as error:  # raised again in the thread of the test
            self.error = error

    def step(self, job: str) -> None:
        lease = self.jobs[job]
        verb = "claim" if lease is None else self.random.choice(["heartbeat", "release"])
        self.in_doubt = (job, verb)
        if lease is None:
            self.jobs[job] = lease = claimed(self.caller.claim(job, f"worker-{self.number}", ttl_seconds=3600))
            self.tokens.append(lease["token"])
        elif verb == "heartbeat":
            ok(self.caller.heartbeat(job, lease["lease_id"], note=f"step {self.done}"))
        else:
            ok(self.caller.release_job(job, lease["lease_id"], note=f"step {self.done}"))
            self.jobs[job] = None
        self.in_doubt = None
        self.done += 1

    def check(self, admin: Agent) -> None:
        """Compare the recorded answers with the server's state, and resolve unknown outcomes."""
        doubtful, verb = self.in_doubt or ("", "")
        for job, lease in self.jobs.items():
            seen = self.caller.owner_of(job)
            if job != doubtful or verb == "heartbeat":
                assert seen["status"] == ("free" if lease is None else "claimed"), (job, seen)
            elif verb == "claim" and seen["status"] == "claimed":
                ok(admin.force_release(job, "nobody ever learned the lease id"))
            elif verb == "release" and seen["status"] == "free":
                lost(self.caller.heartbeat(job, self.jobs[job]["lease_id"]))
                self.jobs[job] = None
            if self.jobs[job] is not None:
                ok(self.caller.heartbeat(job, self.jobs[job]["lease_id"], token=self.jobs[job]["token"]))
        self.in_doubt = None

    def release_all(self) -> None:
        for job, lease in self.jobs.items():
            if lease is not None:
                ok(self.caller.release_job(job, lease["lease_id"]))
                self.jobs[job] = None


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(new_store_url, new_server):
    url = new_store_url()
    server = new_server(url).start()
    workers = [Worker(agent(server, f"alice-{number + 1}"), number) for number in range(WORKERS)]
    rng = random.Random(4127)
    for kill in range(KILLS):
        before = sum(worker.done for worker in workers)
        load_until_killed(server, workers, 0.4 + rng.random() * 0.4)
        assert sum(worker.done for worker in workers) > before + WORKERS, "the server was killed under load"
        server.start()
        together(*[lambda worker=worker: worker.check(root(server)) for worker in workers])
        assert_tokens_only_grow(workers, server)
        if kill % 2:
            together(*[worker.release_all for worker in workers])
            server.kill()
            server.start()
            assert_tokens_only_grow(workers, server)
            assert agent(server).jobs("?prefix=w")["jobs"] == []
    server.kill()
    assert_store_is_consistent(url)
    granted = [token for worker in workers for token in worker.tokens]
    claims = [event for event in events_of(url) if event.kind == "lease.claimed"]
    assert len(claims) >= len(granted)


def load_until_killed(server, workers, seconds):
    stop = threading.Event()
    threads = [threading.Thread(target=worker.work, args=(stop,)) for worker in workers]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    server.kill()
    stop.set()
    for thread in threads:
        thread.join()
    for worker in workers:
        if worker.error is not None:
            raise worker.error


def assert_tokens_only_grow(workers, server):
    for worker in workers:
        assert worker.tokens == sorted(set(worker.tokens))
    granted = [token for worker in workers for token in worker.tokens]
    assert len(granted) == len(set(granted)), "no token was given twice"
    probe = fresh("probe")
    lease = claimed(agent(server).claim(probe))
    assert lease["token"] > max(granted)
    workers[0].tokens.append(lease["token"])
    ok(agent(server).release_job(probe, lease["lease_id"]))
