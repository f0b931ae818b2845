"""Task cycles over HTTP: create, claim and complete, with one or many tasks per request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

import msgspec
import uvloop

from bench.baseline import PAYLOAD
from bench.load import HOST, post

TYPE = "bench"
CREATE, CLAIM, COMPLETE = "create", "claim", "complete"


class ClaimedTask(msgspec.Struct, rename="camel"):
    """The fields of a claimed task that a worker needs."""

    id: str
    lease_id: str


class ClaimedTasks(msgspec.Struct):
    """The answer to a claim with a limit."""

    tasks: list[ClaimedTask] = []


_parse_task = msgspec.json.Decoder(ClaimedTask).decode
_parse_tasks = msgspec.json.Decoder(ClaimedTasks).decode


class Worker(asyncio.Protocol):
    """One connection that repeats create, claim and complete, and reads each whole answer before the next request."""

    def __init__(
        self, many: int, key: str, until: float, done: asyncio.Future[None], count: Callable[[int], None]
    ) -> None:
        self._many = many
        self._key = key
        self._until = until
        self._done = done
        self._count = count
        self._buffer = bytearray()
        self._length = 0
        self._step = CREATE
        create = b'{"type":"%b","payload":%b}' % (TYPE.encode(), PAYLOAD.encode())
        if many == 1:
            self._create = post("/v1/tasks", create, key)
            self._claim = post("/v1/tasks/claim", b'{"type":"bench","worker_id":"w"}', key)
        else:
            item = b'{"op":"create",' + create[1:]
            self._create = post("/v1/tasks/batch", b'{"items":[' + b",".join([item] * many) + b"]}", key)
            self._claim = post("/v1/tasks/claim", b'{"type":"bench","worker_id":"w","limit":%d}' % many, key)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.write(self._create)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._length:
            head = self._buffer.find(b"\r\n\r\n")
            if head < 0:
                return
            position = self._buffer.find(b"content-length: ")
            length = int(self._buffer[position + 16 : self._buffer.find(b"\r\n", position)])
            self._length = head + 4 + length
            self._body_start = head + 4
        if len(self._buffer) < self._length:
            return
        body = bytes(self._buffer[self._body_start : self._length])
        if self._buffer[9:11] != b"20":
            self._done.set_exception(AssertionError(self._buffer.decode()))
            self._transport.close()
            return
        self._buffer.clear()
        self._length = 0
        self._continue(body)

    def _continue(self, body: bytes) -> None:
        if self._step == CREATE:
            self._step = CLAIM
            self._transport.write(self._claim)
        elif self._step == CLAIM:
            self._step = COMPLETE
            self._transport.write(self._complete(body))
        else:
            self._step = CREATE
            self._count(self._many)
            if time.perf_counter() < self._until:
                self._transport.write(self._create)
            else:
                self._transport.close()
                self._done.set_result(None)

    def _complete(self, body: bytes) -> bytes:
        if self._many == 1:
            task = _parse_task(body)
            result = b'{"lease_id":"%b","result":{"ok":true}}' % task.lease_id.encode()
            return post(f"/v1/tasks/{task.id}/complete", result, self._key)
        item = b'{"op":"complete","id":"%b","lease_id":"%b","result":{"ok":true}}'
        items = b",".join(item % (task.id.encode(), task.lease_id.encode()) for task in _parse_tasks(body).tasks)
        return post("/v1/tasks/batch", b'{"items":[' + items + b"]}", self._key)


def cycles_per_second(port: int, key: str, *, connections: int, many: int, seconds: float) -> float:
    """Durable create-claim-complete cycles per second."""

    async def drive() -> float:
        loop = asyncio.get_running_loop()
        total = 0

        def count(more: int) -> None:
            nonlocal total
            total += more

        started = time.perf_counter()
        done = [loop.create_future() for _ in range(connections)]
        for future in done:
            worker = Worker(many, key, started + seconds, future, count)
            await loop.create_connection(partial(_return_worker, worker), HOST, port)
        await asyncio.gather(*done)
        return total / (time.perf_counter() - started)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(drive())


def _return_worker(worker: Worker) -> Worker:
    return worker
