"""A program that floods a server: `python -m tests.faults.flood KIND PORT CONNECTIONS SECONDS KEY`.

Each connection sends its next request as soon as the last one is answered, and connects again when it is closed. It
prints how many requests it sent and how many answers of each status it got.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import uvloop

HOST = "127.0.0.1"
RECONNECT_SECONDS = 0.05
MIB = 1024 * 1024
LEASE = b'{"lease_id":"00000000-0000-4000-8000-000000000000"}'

CLAIMS, WRONG_KEYS, LARGE_BODIES = "claims", "wrong keys", "large bodies"
KINDS = (CLAIMS, WRONG_KEYS, LARGE_BODIES)


class Flooder(asyncio.Protocol):
    """One connection."""

    def __init__(self, flood: Flood) -> None:
        self._flood = flood
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._send()

    def _send(self) -> None:
        self._flood.sent += 1
        self._transport.write(self._flood.next_request())

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(b"\r\n\r\n")
        if head < 0:
            return
        position = self._received.find(b"content-length: ")
        length = int(self._received[position + 16 : self._received.find(b"\r\n", position)])
        if len(self._received) < head + 4 + length:
            return
        self._flood.statuses[int(self._received[9:12])] += 1
        self._received = b""
        if not self._transport.is_closing():
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._flood.reconnect()


class Flood:
    """All connections of this program."""

    def __init__(self, port: int, next_request: Callable[[], bytes], seconds: float) -> None:
        self.next_request = next_request
        self.sent = 0
        self.statuses: Counter[int] = Counter()
        self._port = port
        self._until = time.monotonic() + seconds
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, connections: int) -> None:
        for _ in range(connections):
            self._connect(0)
        await asyncio.sleep(self._until - time.monotonic())

    def reconnect(self) -> None:
        if time.monotonic() < self._until:
            self._connect(RECONNECT_SECONDS)

    def _connect(self, delay: float) -> None:
        task = self._loop.create_task(self._connect_after(delay))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect_after(self, delay: float) -> None:
        await asyncio.sleep(delay)
        try:
            await self._loop.create_connection(lambda: Flooder(self), HOST, self._port)
        except OSError:
            self.reconnect()


def requests(kind: str, key: str) -> Callable[[], bytes]:
    """A function that returns the next request of a kind of flood."""
    numbers = itertools.count()
    if kind == CLAIMS:
        return lambda: post(f"/v1/jobs/flood-{next(numbers)}/claim", b'{"owner":"flood","ttl_seconds":5}', key)
    if kind == WRONG_KEYS:
        paths = itertools.cycle(["/v1/jobs/flood/claim", "/v1/jobs/flood/heartbeat", "/locks/flood/renew"])
        return lambda: post(next(paths), LEASE, f"no-such-key-but-long-enough-{next(numbers):032}")
    unknown = b",".join(b'"fie%06d":0' % number for number in range(2 * MIB // 14))
    item = b'{"op":"complete","id":"x","lease_id":"y","result":{"text":"%s"}}' % (b"x" * 2_000)
    items = b",".join([item] * 1_000)
    return itertools.cycle(
        [
            post("/v1/tasks/batch", b'{"items":[%s]}' % items, f"{key}\r\nidempotency-key: flood"),
            post("/v1/tasks/batch", b'{"items":[],%s}' % unknown, key),
            post("/locks/flood/acquire", b" " * (2 * MIB), "no-such-key-but-long-enough"),
        ]
    ).__next__


def post(path: str, body: bytes, key: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer {key}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def main() -> None:
    kind, port, connections, seconds, key = sys.argv[1:]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    flood = Flood(int(port), requests(kind, key), float(seconds))
    await flood.run(int(connections))
    sys.stdout.write(json.dumps({"sent": flood.sent, "statuses": flood.statuses}))


if __name__ == "__main__":
    uvloop.run(main())
