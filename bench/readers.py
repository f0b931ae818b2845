"""Program that reads many event streams over plain sockets, with little CPU time. `bench.streams` starts it.

It prints `open` when every stream is open. For a line `count` on stdin it prints the number of events received so far;
for any other line it prints a JSON report with the ids that each reader received, and exits.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial

import uvloop

HOST = "127.0.0.1"


class Reader(asyncio.Protocol):
    """Reader of one stream: collects the ids of the frames with data."""

    def __init__(self, request: bytes, opened: asyncio.Semaphore) -> None:
        self._request = request
        self._opened = opened
        self._rest = b""
        self._is_open = False
        self.ids: list[int] = []
        self.is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.write(self._request)  # type: ignore[attr-defined] # uvloop's are no subclasses

    def data_received(self, data: bytes) -> None:
        *frames, self._rest = (self._rest + data).split(b"\n\n")
        for frame in frames:
            if b"\ndata:" in frame:
                start = frame.index(b"id: ") + 4
                self.ids.append(int(frame[start : frame.index(b"\n", start)]))
            elif not self._is_open and b": open" in frame:
                self._is_open = True
                self._opened.release()

    def connection_lost(self, _error: Exception | None) -> None:
        self.is_closed = True


def request(path: str, key: str) -> bytes:
    """The bytes of a request for a stream."""
    head = f"GET {path} HTTP/1.1\r\nhost: bench\r\naccept: text/event-stream\r\nauthorization: Bearer {key}\r\n\r\n"
    return head.encode()


async def follow(port: int, streams: list[tuple[str, str]]) -> None:
    """Open all streams, print `open`, and read until stdin has a line other than `count`."""
    loop = asyncio.get_running_loop()
    opened = asyncio.Semaphore(0)
    readers = [Reader(request(path, key), opened) for path, key in streams]
    for reader in readers:  # one after the other: many at once would be refused as overload
        await loop.create_connection(partial(_return_reader, reader), HOST, port)
        await asyncio.wait_for(opened.acquire(), 60)
    print("open", flush=True)
    began = time.process_time()
    while await loop.run_in_executor(None, sys.stdin.readline) == "count\n":
        print(sum(len(reader.ids) for reader in readers), flush=True)
    report = {
        "ids": [reader.ids for reader in readers],
        "closed": sum(reader.is_closed for reader in readers),
        "cpu": time.process_time() - began,
    }
    print(json.dumps(report), flush=True)


def _return_reader(reader: Reader) -> Reader:
    return reader


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(follow(int(sys.argv[1]), json.loads(sys.stdin.readline())))
