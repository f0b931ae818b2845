"""The Python client: CPU for each task of a worker with much to do, and what many held leases cost.

`python -m bench.client [TASKS [LEASES]]` runs a worker of 16 places on a queue of small tasks, then holds many jobs for
a while, both with a server on SQLite. CPU time is reported, because it depends little on what else the machine does.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil

import holdfast
from bench.serving import KEY, server
from holdfast.client.http import HttpTransport
from holdfast.client.leases.types import TaskLease
from holdfast.client.request import Answer, Request

TASKS, LEASES = 5_000, 500
PLACES = 16
TTL, HELD_SECONDS = 30, 30.0
CREATED_AT_ONCE = 500


class Meter:
    """CPU time of this process and of the server, and the client's requests, since it was made."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._requests = _requests.sent
        self._began = time.process_time(), self._server_cpu()

    def report(self, number: float, unit: str) -> str:
        """What was used, divided by a number of units."""
        client, by_server = (
            1e6 * (now - then) / number
            for now, then in zip((time.process_time(), self._server_cpu()), self._began, strict=True)
        )
        requests = (_requests.sent - self._requests) / number
        return f"client {client:.0f} us/{unit}, server {by_server:.0f} us/{unit}, {requests:.2f} requests/{unit}"

    def _server_cpu(self) -> float:
        processes = [self._process, *self._process.children(recursive=True)]
        return sum(sum(process.cpu_times()[:2]) for process in processes)


class Requests:
    """Counts the requests of all clients in this process."""

    def __init__(self) -> None:
        self.sent = 0
        send = HttpTransport.send

        def count(transport: HttpTransport, request: Request, timeout: float) -> Answer:
            self.sent += 1
            return send(transport, request, timeout)

        HttpTransport.send = count


_requests = Requests()


def create_tasks(client: holdfast.Client, tasks: int) -> None:
    """Create small tasks."""
    for first in range(0, tasks, CREATED_AT_ONCE):
        numbers = range(first, min(first + CREATED_AT_ONCE, tasks))
        client.batch_tasks([{"op": "create", "type": "bench", "payload": {"n": number}} for number in numbers])


def run_worker(client: holdfast.Client, tasks: int) -> None:
    """Run a worker until it has completed all tasks."""
    worker, done = holdfast.Worker(client, concurrency=PLACES), threading.Semaphore(0)

    @worker.task("bench")
    def handle(context: TaskLease) -> dict[str, int]:
        done.release()
        return {"n": context.payload["n"]}

    def stop_at_the_end() -> None:
        for _ in range(tasks):
            done.acquire()
        worker.stop()

    threading.Thread(target=stop_at_the_end).start()
    worker.run()
    assert client.count_tasks()["total"]["completed"] == tasks


@contextmanager
def held(client: holdfast.Client, leases: int) -> Iterator[None]:
    """Hold this many jobs, and check at the end that all of them are still held."""
    with ExitStack() as stack:
        jobs = [stack.enter_context(client.job(f"bench/{number}", "me", ttl=TTL)) for number in range(leases)]
        time.sleep(TTL / 3)  # their first renewals, which are not yet due together
        yield
        for job in jobs:
            job.check()


def main() -> None:
    """Measure both, and print the figures."""
    given = [int(number) for number in sys.argv[1:]]
    tasks, leases = given + [TASKS, LEASES][len(given) :]
    with (
        tempfile.TemporaryDirectory(prefix="hf-bench-") as folder,
        server(f"sqlite:///{folder}/x.db", XDG_CONFIG_HOME=folder) as (port, process),
        holdfast.Client(f"http://127.0.0.1:{port}", KEY) as client,
    ):
        create_tasks(client, tasks)
        meter = Meter(process)
        run_worker(client, tasks)
        print(f"{tasks} tasks, {PLACES} places: {meter.report(tasks, 'task')}")
        with held(client, leases):
            meter = Meter(process)
            time.sleep(HELD_SECONDS)
            print(f"{leases} held leases, TTL {TTL} s: {meter.report(HELD_SECONDS, 's')}", end="")
            print(f", {threading.active_count()} threads")


if __name__ == "__main__":
    main()
