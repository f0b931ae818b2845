"""The load generator of `load.c` in Python, for machines without a compiler. It needs more processor time."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

COMMAND = [sys.executable, "-m", "bench.python_load"]
HOST = "127.0.0.1"

Script = list[tuple[int, bytes, bytes, bytes]]
"""Steps: number of lines of the answer, how it must begin, head and body of the request."""


class Run:
    """What all callers share."""

    def __init__(self, scripts: list[Script], until: float, *, first: int, is_once: bool, markers: list[bytes]) -> None:
        self._scripts = scripts
        self._until = until
        self._is_once = is_once
        self._first = first
        self._started = 0
        self.markers = markers
        self.latencies: list[list[float]] = [[] for _ in range(max(map(len, scripts)))]
        self.captures: list[tuple[int, str]] = []

    def next_script(self, *, is_first: bool) -> tuple[int, Script] | None:
        """The next one to run. Every connection gets one, however late it is."""
        is_over = not is_first and time.perf_counter() >= self._until
        if is_over or (self._is_once and self._started >= len(self._scripts)):
            return None
        number = self._started
        self._started += 1
        return self._first + number, self._scripts[number % len(self._scripts)]


class Caller(asyncio.Protocol):
    """One connection: sends a request, waits for the whole answer, sends the next."""

    def __init__(self, run: Run, done: asyncio.Future[None]) -> None:
        self._run = run
        self._done = done
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._begin(is_first=True)

    def _begin(self, *, is_first: bool = False) -> None:
        found = self._run.next_script(is_first=is_first)
        if found is None:
            self._transport.close()
            self._done.set_result(None)
            return
        self._number, self._script = found
        self._step = 0
        self._captured = [b"", b""]
        self._send()

    def _send(self) -> None:
        lines, _, head, body = self._script[self._step]
        request = self._fill(head)
        if lines == 0:
            body = self._fill(body)
            request += b"content-length: %d\r\n\r\n" % len(body) + body
        self._sent = time.perf_counter()
        self._transport.write(request)

    def _fill(self, template: bytes) -> bytes:
        filled = template.replace(b"\x01", b"%08d" % self._number)
        return filled.replace(b"\x02", self._captured[0]).replace(b"\x03", self._captured[1])

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        lines, expected, _, _ = self._script[self._step]
        if not is_complete(self._buffer, lines):
            return
        if not self._buffer.startswith(expected):
            self._done.set_exception(AssertionError(f"unexpected answer: {self._buffer.decode()}"))
            self._transport.close()
            return
        self._run.latencies[self._step].append(time.perf_counter() - self._sent)
        for index, marker in enumerate(self._run.markers):
            if marker in self._buffer:
                self._captured[index] = re.split(rb'["\s]', self._buffer.partition(marker)[2], maxsplit=1)[0]
        self._buffer = b""
        self._step += 1
        if self._step < len(self._script):
            self._send()
        else:
            self._run.captures.append((self._number, self._captured[0].decode()))
            self._begin()

    def connection_lost(self, _error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(AssertionError("the server closed a connection"))


def is_complete(answer: bytes, lines: int) -> bool:
    """Whether the whole answer has arrived: so many lines, or an HTTP answer with a content-length."""
    if lines:
        return answer.count(b"\r\n") >= lines
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    return bool(end) and len(body) >= int(length[1] if length else 0)


def read_scripts(content: bytes) -> list[Script]:
    """The scripts in a file; `load.c` explains its form."""
    scripts: list[Script] = []
    while content:
        line, _, content = content.partition(b"\n")
        number, lines, *lengths = map(int, line.split())
        texts = []
        for length in lengths:
            texts.append(content[:length])
            content = content[length:]
        if number == len(scripts):
            scripts.append([])
        scripts[number].append((lines, texts[0], texts[1], texts[2]))
    return scripts


async def drive(port: int, connections: int, run: Run) -> None:
    loop = asyncio.get_running_loop()
    done = [loop.create_future() for _ in range(connections)]
    for future in done:
        await loop.create_connection(partial(Caller, run, future), HOST, port)
    await asyncio.gather(*done)


def summary(latencies: list[float]) -> dict[str, float]:
    ordered = sorted(latencies)
    return {"count": len(ordered), "p50": ordered[len(ordered) // 2], "p99": ordered[int(len(ordered) * 0.99)]}


def main() -> None:
    """Take the arguments of `load.c` and print what it prints."""
    port, connections, seconds, path, first, once, captures, *markers = sys.argv[1:]
    started = time.perf_counter()
    scripts = read_scripts(Path(path).read_bytes())
    needed = [marker.encode() for marker in markers]
    run = Run(scripts, started + float(seconds), first=int(first), is_once=once == "1", markers=needed)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(drive(int(port), int(connections), run))
    elapsed = time.perf_counter() - started
    if captures != "-":
        Path(captures).write_text("".join(f"{number:08} {text}\n" for number, text in run.captures))
    every = [latency for step in run.latencies for latency in step]
    result = {
        "answered": len(every), "finished": len(run.captures), "seconds": elapsed, "cpu": time.process_time(),
        "all": summary(every), "steps": [summary(step) for step in run.latencies],
    }  # fmt: skip
    print(json.dumps(result))


if __name__ == "__main__":
    main()
