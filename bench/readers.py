"""Readers of streams, as cheap as they can be: bare sockets in a process of their own, one line of JSON at the end.

Each reader keeps the ids it saw; whoever started this process compares them with the log. The first word on stdout is
`open`, once every reader stands in its stream. On stdin, `count` asks how much was seen, anything else ends it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial

import uvloop

from bench.load import HOST


class Reader(asyncio.Protocol):
    """One stream. It notes the ids of frames that carry data."""

    def __init__(self, request: bytes, opened: asyncio.Semaphore) -> None:
        self._request = request
        self._opened = opened
        self._rest = b""
        self._is_open = False
        self.seen: list[int] = []
        self.over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.write(self._request)  # type: ignore[attr-defined] # uvloop's are no subclasses

    def data_received(self, data: bytes) -> None:
        *frames, self._rest = (self._rest + data).split(b"\n\n")
        for frame in frames:
            if b"\ndata:" in frame:
                place = frame.index(b"id: ") + 4
                self.seen.append(int(frame[place : frame.index(b"\n", place)]))
            elif not self._is_open and b": open" in frame:
                self._is_open = True
                self._opened.release()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio names it
        self.over = True


def request(path: str, key: str) -> bytes:
    """The bytes that open a stream."""
    head = f"GET {path} HTTP/1.1\r\nhost: bench\r\naccept: text/event-stream\r\nauthorization: Bearer {key}\r\n\r\n"
    return head.encode()


async def follow(port: int, streams: list[tuple[str, str]]) -> None:
    """Open every stream, say so, and read until told to stop."""
    loop = asyncio.get_running_loop()
    opened = asyncio.Semaphore(0)
    readers = [Reader(request(path, key), opened) for path, key in streams]
    for reader in readers:
        await loop.create_connection(partial(_itself, reader), HOST, port)
    for _ in readers:
        await asyncio.wait_for(opened.acquire(), 60)
    print("open", flush=True)
    began = time.process_time()
    while await loop.run_in_executor(None, sys.stdin.readline) == "count\n":
        print(sum(len(reader.seen) for reader in readers), flush=True)
    report = {
        "seen": [reader.seen for reader in readers],
        "cut": sum(reader.over for reader in readers),
        "cpu": time.process_time() - began,
    }
    print(json.dumps(report), flush=True)


def _itself(reader: Reader) -> Reader:
    return reader


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(follow(int(sys.argv[1]), json.loads(sys.stdin.readline())))
