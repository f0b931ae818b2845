"""Workers in a separate process, which a test can kill (a crew).

    python -m tests.faults.worker_process PORT KEY NAME WORKERS

Each has a session of ten seconds and claims one task after the other. Each line on stdout is something that was
acknowledged: it is written when the answer has come, and not before.
"""

import os
import random
import sys
import threading
import time
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from tests.compat.octostore.server import bearer
from tests.compat.octostore.wire import Answer, Caller

TTL_SECONDS = 10
RENEW_SECONDS = 2.0
PAGES = 3


def start(port: int, key: str, name: str, workers: int) -> "Popen[str]":
    """Start a crew; its stdout can be read line by line."""
    command = [sys.executable, "-m", "tests.faults.worker_process", str(port), key, name, str(workers)]
    return Popen(command, cwd=Path(__file__).parents[2], stdout=PIPE, text=True)


class Worker:
    """Claims tasks, saves a checkpoint after each page, completes; continues where the previous attempt stopped."""

    def __init__(self, caller: Caller, name: str) -> None:
        self.caller = caller
        self.name = name
        self.session_count = 0
        self.rng = random.Random(name)

    def work(self) -> None:
        while True:
            self.begin()
            while (task := self.claim()) is not None:
                if task:
                    self.do(task)

    def begin(self) -> None:
        self.session_count += 1
        opened = self.caller.post(
            "/v1/sessions", {"name": f"{self.name}/{self.session_count}", "ttl_seconds": TTL_SECONDS}
        )
        self.session = opened.json
        self.renewed = time.monotonic()

    def claim(self) -> dict[str, Any] | None:
        """A task; empty if none is ready, None if the session has ended."""
        if not self.renew():
            return None
        claim_fields = {"worker_id": self.name, "session_id": self.session["session_id"], "wait_seconds": 4}
        answer = self.caller.post("/v1/tasks/claim", claim_fields)
        if answer.status != 200:
            return None
        task: dict[str, Any] = answer.json if answer.json["task"] else {}
        return task

    def renew(self) -> bool:
        if time.monotonic() - self.renewed < RENEW_SECONDS:
            return True
        self.renewed = time.monotonic()
        path = f"/v1/sessions/{self.session['session_id']}/heartbeat"
        return self.caller.post(path, {"lease_id": self.session["lease_id"]}).status == 200

    def do(self, task: dict[str, Any]) -> None:
        previous = (task["previousAttempt"] or {}).get("checkpoint") or {"page": 0}
        report("claimed", task["id"], task["fencingToken"], previous["page"])
        for page in range(previous["page"] + 1, PAGES + 1):
            time.sleep(self.rng.random() * 0.04)  # the work itself
            if not self.tell(task, "heartbeat", "checkpoint", page, checkpoint={"page": page}):
                return
        self.tell(task, "complete", "completed", task["fencingToken"], result={"token": task["fencingToken"]})

    def tell(self, task: dict[str, Any], verb: str, word: str, value: int, **fields: object) -> bool:
        proof = {"lease_id": task["leaseId"], "fencing_token": task["fencingToken"]}
        answer: Answer = self.caller.post(f"/v1/tasks/{task['id']}/{verb}", {**proof, **fields})
        report(word if answer.status == 200 else "refused", task["id"], value)
        return answer.status == 200


def report(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main(port: str, key: str, name: str, workers: str) -> None:
    crew = [Worker(bearer(int(port), key), f"{name}/{number}") for number in range(int(workers))]
    threads = [threading.Thread(target=worker.work) for worker in crew]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
