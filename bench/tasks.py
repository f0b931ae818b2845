"""Tasks over HTTP: create, claim, complete, one task a request or a hundred."""

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


class Taken(msgspec.Struct):
    """What a worker needs of a claimed task."""

    id: str
    leaseId: str  # noqa: N815 - a wire name


class TakenMany(msgspec.Struct):
    """The same for several."""

    tasks: list[Taken] = []


_one = msgspec.json.Decoder(Taken).decode
_many = msgspec.json.Decoder(TakenMany).decode


class Worker(asyncio.Protocol):
    """Goes round: create, claim, complete; waits for each whole answer."""

    def __init__(
        self, many: int, key: str, until: float, done: asyncio.Future[None], count: Callable[[int], None]
    ) -> None:
        self._many = many
        self._key = key
        self._until = until
        self._done = done
        self._count = count
        self._buffer = bytearray()
        self._need = 0
        self._step = 0
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
        if not self._need:
            head = self._buffer.find(b"\r\n\r\n")
            if head < 0:
                return
            place = self._buffer.find(b"content-length: ")
            length = int(self._buffer[place + 16 : self._buffer.find(b"\r\n", place)])
            self._need = head + 4 + length
            self._body = head + 4
        if len(self._buffer) < self._need:
            return
        body = bytes(self._buffer[self._body : self._need])
        if self._buffer[9:11] != b"20":
            self._done.set_exception(AssertionError(self._buffer.decode()))
            self._transport.close()
            return
        self._buffer.clear()
        self._need = 0
        self._answered(body)

    def _answered(self, body: bytes) -> None:
        self._step = (self._step + 1) % 3
        if self._step == 1:
            self._transport.write(self._claim)
        elif self._step == 2:  # noqa: PLR2004 - the third of three
            self._transport.write(self._complete(body))
        else:
            self._count(self._many)
            if time.perf_counter() < self._until:
                self._transport.write(self._create)
            else:
                self._transport.close()
                self._done.set_result(None)

    def _complete(self, body: bytes) -> bytes:
        if self._many == 1:
            taken = _one(body)
            result = b'{"lease_id":"%b","result":{"ok":true}}' % taken.leaseId.encode()
            return post(f"/v1/tasks/{taken.id}/complete", result, self._key)
        item = b'{"op":"complete","id":"%b","lease_id":"%b","result":{"ok":true}}'
        items = b",".join(item % (task.id.encode(), task.leaseId.encode()) for task in _many(body).tasks)
        return post("/v1/tasks/batch", b'{"items":[' + items + b"]}", self._key)


def cycles_per_second(port: int, key: str, *, connections: int, many: int, seconds: float) -> float:
    """Durable create-claim-complete cycles a second."""

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
            await loop.create_connection(partial(_itself, worker), HOST, port)
        await asyncio.gather(*done)
        return total / (time.perf_counter() - started)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(drive())


def _itself(worker: Worker) -> Worker:
    return worker
