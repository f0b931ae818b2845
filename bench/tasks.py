"""Task cycles over HTTP: create, claim and complete, with one task or a hundred per request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec
import uvloop

from bench import scripts
from bench.figures import Figures
from bench.python_load import is_complete
from bench.requests import record
from bench.scripts import PAYLOAD, request_bytes
from bench.serving import server
from bench.stores import NewStore
from bench.tree import Tree

HOST = "127.0.0.1"
MANY = 100
CONNECTIONS = 128
WORKERS = 16
CREATE, CLAIM, COMPLETE = "create", "claim", "complete"


def measure_tasks(figures: Figures, name: str, new_store: NewStore, trees: Sequence[Tree], seconds: float) -> None:
    """One round on one kind of store: tasks one by one, by 16 workers, and in hundreds."""
    with ExitStack() as stack:
        servers = {tree.prefix: stack.enter_context(server(new_store(), tree=tree)) for tree in trees}
        for prefix, one in servers.items():
            load = scripts.task_cycles()
            record(figures, f"{prefix}{name}.task", one, load, connections=CONNECTIONS, seconds=seconds)
        for prefix, one in servers.items():
            load = scripts.task_cycles()
            result = record(figures, f"{prefix}{name}.workers", one, load, connections=WORKERS, seconds=seconds)
            figures.add(f"{prefix}{name}.workers.claim.p50", result.steps[1].p50)
            figures.add(f"{prefix}{name}.workers.claim.p99", result.steps[1].p99)
        for prefix, one in servers.items():
            before = one.cpu_seconds()
            done, elapsed = cycles(one.port, connections=4, seconds=seconds)
            figures.add(f"{prefix}{name}.hundreds.rate", done / elapsed)
            figures.add(f"{prefix}{name}.hundreds.cpu", (one.cpu_seconds() - before) / done)


class ClaimedTask(msgspec.Struct, rename="camel"):
    """The fields of a claimed task that a worker needs."""

    id: str
    lease_id: str


class ClaimedTasks(msgspec.Struct):
    """The answer to a claim with a limit."""

    tasks: list[ClaimedTask] = []


_parse_tasks = msgspec.json.Decoder(ClaimedTasks).decode


class Worker(asyncio.Protocol):
    """One connection that repeats create, claim and complete, and reads each whole answer before the next request."""

    def __init__(self, until: float, done: asyncio.Future[int]) -> None:
        self._until = until
        self._done = done
        self._buffer = bytearray()
        self._step = CREATE
        self._count = 0
        item = f'{{"op":"create","type":"bench","payload":{PAYLOAD}}}'
        self._create = request_bytes("/v1/tasks/batch", f'{{"items":[{",".join([item] * MANY)}]}}'.encode())
        self._claim = request_bytes("/v1/tasks/claim", b'{"type":"bench","worker_id":"w","limit":%d}' % MANY)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._create)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not is_complete(bytes(self._buffer), 0):
            return
        head, _, body = bytes(self._buffer).partition(b"\r\n\r\n")
        if head[9:11] != b"20":
            self._done.set_exception(AssertionError(self._buffer.decode()))
            self._transport.close()
            return
        self._buffer.clear()
        self._continue(body)

    def _continue(self, body: bytes) -> None:
        if self._step == CREATE:
            self._step = CLAIM
            self._transport.write(self._claim)
        elif self._step == CLAIM:
            self._step = COMPLETE
            self._transport.write(completion(_parse_tasks(body).tasks))
        else:
            self._step = CREATE
            self._count += MANY
            if time.perf_counter() < self._until:
                self._transport.write(self._create)
            else:
                self._transport.close()
                self._done.set_result(self._count)


def completion(tasks: list[ClaimedTask]) -> bytes:
    """The request that completes these tasks."""
    item = '{"op":"complete","id":"%s","lease_id":"%s","result":{"ok":true}}'
    items = ",".join(item % (task.id, task.lease_id) for task in tasks)
    return request_bytes("/v1/tasks/batch", f'{{"items":[{items}]}}'.encode())


def cycles(port: int, *, connections: int, seconds: float) -> tuple[int, float]:
    """Tasks that were created, claimed and completed, a hundred in each request, and the time that it took."""

    async def drive() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        started = time.perf_counter()
        done = [loop.create_future() for _ in range(connections)]
        for future in done:
            await loop.create_connection(partial(Worker, started + seconds, future), HOST, port)
        return sum(await asyncio.gather(*done)), time.perf_counter() - started

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(drive())
