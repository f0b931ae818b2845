"""Clients of the drill: threads that claim, renew and release jobs, and create, claim and complete tasks."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from abc import ABC, abstractmethod
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any

from tests.failover.history import Call, History, Outcome
from tests.failover.servers import KEY, PORT, HoldfastServer

JOBS = 8
"""Names that the clients of all servers compete for."""
JOB_TTL = 10
HOLDER_TTL = 10
"""Shorter than the failover after a fault: only the grace after an outage lets a holder keep its job."""
HOLDER_RENEWS = 1.0
TIMEOUT = 25.0
"""Longer than a server waits for its database."""
REFUSALS = (HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE)
"""A lease that is lost, a database that is not there. Nothing else may be refused."""
RETRY_SECONDS = 90.0
PAUSE = 0.03

Answer = tuple[Outcome, dict[str, Any]]


class Client(ABC):
    """One thread that repeats its work against one server until it is stopped, and records every call."""

    def __init__(self, server: HoldfastServer, history: History, number: int) -> None:
        self.server = server
        self.name = f"{server.machine}-{number}"
        self._history = history
        self._random = random.Random(self.name)
        self._connection = HTTPConnection(server.host, PORT, timeout=TIMEOUT)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end after its present call."""
        self._stopped.set()

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.work()
            except Exception as error:
                self._history.unexpected.append(f"{self.name}: {error!r}")
            self._stopped.wait(self._random.uniform(0, 2 * PAUSE))

    @abstractmethod
    def work(self) -> None:
        """One piece of work."""

    def call(self, verb: str, path: str, body: dict[str, Any], *, retry: bool = False, **known: Any) -> Answer:
        """Ask for one change and record it; with `retry` until the outcome is known, under one Idempotency-Key."""
        key = {"idempotency-key": str(uuid.uuid4())} if retry else {}
        sent_at, request_ids = time.monotonic(), list[str]()
        while True:
            request_ids.append(str(uuid.uuid4()))
            outcome, document = self._send(path, body, key | {"x-request-id": request_ids[-1]})
            answered_at = time.monotonic()
            if not retry or outcome is Outcome.ACKNOWLEDGED or answered_at - sent_at > RETRY_SECONDS:
                break
            time.sleep(10 * PAUSE)
        if len(request_ids) > 1 and outcome is Outcome.NOT_APPLIED:
            outcome = Outcome.UNKNOWN
        if changes_something(document):
            granted = {
                "token": document.get("token") or document.get("fencingToken"),
                "subject": document.get("id", ""),
            }
            times = {"sent_at": sent_at, "answered_at": answered_at}
            self._history.add(
                Call(verb=verb, server=self.server.machine, request_ids=tuple(request_ids), outcome=outcome,
                     **times, **(granted | known))
            )  # fmt: skip
        return outcome, document

    def _send(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        """One request. An answer that never comes leaves the outcome unknown, unless nothing was sent."""
        fixed = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        try:
            if self._connection.sock is None:
                self._connection.connect()
        except OSError:
            return Outcome.NOT_APPLIED, {"error": "unreachable"}
        try:
            self._connection.request("POST", path, json.dumps(body), fixed | headers)
            response = self._connection.getresponse()
            document = json.loads(response.read() or b"{}")
        except (OSError, HTTPException, ValueError):
            self._connection.close()
            return Outcome.UNKNOWN, {"error": "no answer"}
        if response.status < HTTPStatus.MULTIPLE_CHOICES:
            return Outcome.ACKNOWLEDGED, document
        if response.status not in REFUSALS:
            self._history.unexpected.append(f"{path}: {response.status} {document.get('error')}")
        is_unknown = document.get("applied") == "unknown" or response.status == HTTPStatus.INTERNAL_SERVER_ERROR
        return (Outcome.UNKNOWN if is_unknown else Outcome.NOT_APPLIED), document


class JobClient(Client):
    """Claims a job that others want too, renews it up to twice, releases it."""

    def work(self) -> None:
        name = f"drill/{self._random.randrange(JOBS)}"
        job = Job(self, name, JOB_TTL)
        if not job.claim():
            return
        for _ in range(self._random.randrange(3)):
            time.sleep(PAUSE)
            if job.act("renewed", "heartbeat")[0] is not Outcome.ACKNOWLEDGED:
                return
        job.act("released", "release")


class Job:
    """A job of one client."""

    def __init__(self, client: Client, name: str, ttl: int) -> None:
        self._client = client
        self._path = f"/v1/jobs/{name}"
        self._known: dict[str, Any] = {"subject": name, "ttl": ttl}
        self._lease_id = ""

    def claim(self) -> bool:
        """Whether it is now ours."""
        body = {"owner": self._client.name, "ttl_seconds": self._known["ttl"]}
        _, lease = self._client.call("claimed", f"{self._path}/claim", body, **self._known)
        if lease.get("status") != "claimed":
            return False
        self._lease_id, self._known["token"] = lease["lease_id"], lease["token"]
        return True

    def act(self, verb: str, path: str) -> Answer:
        """Renew or release it."""
        return self._client.call(verb, f"{self._path}/{path}", {"lease_id": self._lease_id}, **self._known)


class TaskClient(Client):
    """Creates a task, claims one, completes it. What it creates is repeated until the outcome is known."""

    def work(self) -> None:
        self.call("created", "/v1/tasks", {"type": "drill", "payload": {"by": self.name}}, retry=True)
        outcome, task = self.call("claimed", "/v1/tasks/claim", {"type": "drill", "worker_id": self.name})
        if outcome is Outcome.ACKNOWLEDGED and "leaseId" in task:
            body = {"lease_id": task["leaseId"], "worker_id": self.name, "result": {"by": self.name}}
            self.call("completed", f"/v1/tasks/{task['id']}/complete", body, subject=task["id"])


class Holder(Client):
    """Holds one job for the whole drill and renews it every second, through every outage.

    If the first answer after an outage is that the lease is lost, the outage has cost it. A lease that is lost between
    outages was renewed too late, as on a machine that is busy with other work.
    """

    job: Job | None = None
    is_outage = False

    def work(self) -> None:
        name = f"held/{self.name}"
        if self.job is None:
            job = Job(self, name, HOLDER_TTL)
            self.job = job if job.claim() else None
            self.is_outage = False
        else:
            outcome, answer = self.job.act("renewed", "heartbeat")
            if answer.get("error") == "lease_lost":
                self.job = None
                if self.is_outage:
                    self._history.lost_leases.append(name)
            self.is_outage = outcome is not Outcome.ACKNOWLEDGED
        self._stopped.wait(HOLDER_RENEWS)


KINDS: tuple[type[Client], ...] = (*(JobClient,) * 5, *(TaskClient,) * 3, Holder)
"""The clients of each server."""


def start_clients(servers: list[HoldfastServer], history: History) -> list[Client]:
    """Start all clients of all servers."""
    return [make(server, history, number) for server in servers for number, make in enumerate(KINDS)]


def changes_something(document: dict[str, Any]) -> bool:
    """Whether an answer is about a change: a claim that found another holder, or no task, is not."""
    return document.get("status") != "held" and document.get("task", document) is not None
