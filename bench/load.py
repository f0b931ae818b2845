"""HTTP load generator: plain sockets, with one request in flight on each connection."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from functools import partial

import uvloop

HOST = "127.0.0.1"


class Caller(asyncio.Protocol):
    """Sends a request, waits for the whole answer, sends the next."""

    def __init__(
        self, requests: Callable[[], bytes], until: float, latencies: list[float], done: asyncio.Future[None]
    ) -> None:
        self._requests = requests
        self._until = until
        self._latencies = latencies
        self._done = done
        self._buffer = b""
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        if self._sent >= self._until:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)
            return
        self._transport.write(self._requests())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        position = self._buffer.find(b"content-length: ")
        length = int(self._buffer[position + 16 : self._buffer.find(b"\r\n", position)]) if position >= 0 else 0
        if len(self._buffer) < head + 4 + length:
            return
        if self._buffer[9:12] != b"200":
            self._done.set_exception(AssertionError(self._buffer.decode()))
            self._transport.close()
            return
        self._latencies.append(time.perf_counter() - self._sent)
        self._buffer = b""
        self._send()


class Result:
    """Rate and latencies of one run."""

    def __init__(self, latencies: list[float], seconds: float) -> None:
        self.rate = len(latencies) / seconds
        self.median = statistics.median(latencies)
        self.p99 = sorted(latencies)[int(len(latencies) * 0.99)]


def run(port: int, requests: Callable[[], bytes], *, connections: int, seconds: float) -> Result:
    """Send requests on all connections until the time is over."""

    async def drive() -> Result:
        loop = asyncio.get_running_loop()
        latencies: list[float] = []
        started = time.perf_counter()
        done = [loop.create_future() for _ in range(connections)]
        for future in done:
            caller = Caller(requests, started + seconds, latencies, future)
            await loop.create_connection(partial(_return_caller, caller), HOST, port)
        await asyncio.gather(*done)
        return Result(latencies, time.perf_counter() - started)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(drive())


def _return_caller(caller: Caller) -> Caller:
    return caller


def post(path: str, body: bytes, key: str = "") -> bytes:
    """The bytes of a POST request."""
    authorization = f"authorization: Bearer {key}\r\n" if key else ""
    head = f"POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n{authorization}"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
