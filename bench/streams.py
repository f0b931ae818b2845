"""Many read along while others write: whether anybody misses anything, and what it costs those who write.

`python -m bench.streams [sqlite|postgres]`. A steady stream of claims, each of them an event of one of a hundred
subjects, once with nobody reading, once with a thousand readers of one subject each, once with fifty readers of
everything. The claims keep their pace whatever the server does: a late one is counted from when it was due.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench.load import HOST, post
from bench.serving import KEY, get_json, post_json, server

SUBJECTS = 100
KEYS = 10
PATIENCE = 30.0


class Size(msgspec.Struct, frozen=True):
    """How much of it."""

    readers: int = 1_000
    of_everything: int = 50
    events_per_second: int = 1_000
    seconds: float = 10.0
    connections: int = 32


class Outcome(msgspec.Struct):
    """What one run showed."""

    p50: float
    p99: float
    written: int
    wrong: int
    """Readers who missed an event, or saw one twice or out of order."""
    cut: int
    late: float
    """Seconds from the last write until every reader had seen all."""
    rss: int
    server_cpu: float
    readers_cpu: float


class Pacer:
    """Sends requests at fixed moments over a few connections; times run from the moment, not from the sending."""

    def __init__(self, port: int, rate: int, seconds: float, connections: int) -> None:
        self._port = port
        self._moments = iter([number / rate for number in range(int(rate * seconds))])
        self._numbers = itertools.count()
        self._connections = connections
        self.times: list[float] = []

    async def run(self) -> list[float]:
        self._began = time.perf_counter() + 0.1
        await asyncio.gather(*(self._send_all() for _ in range(self._connections)))
        return sorted(self.times)

    async def _send_all(self) -> None:
        reader, writer = await asyncio.open_connection(HOST, self._port)
        for moment in self._moments:
            due = self._began + moment
            await asyncio.sleep(max(due - time.perf_counter(), 0))
            writer.write(claim(next(self._numbers)))
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            self.times.append(time.perf_counter() - due)
        writer.close()


def claim(number: int) -> bytes:
    """Each claim of a lock by its own holder keeps it: one event, `renewed`, after the first."""
    return post(f"/locks/subject-{number % SUBJECTS}/acquire", b'{"ttl_seconds":600}', KEY)


def measure(url: str, size: Size, streams: int, *, everything: bool = False) -> Outcome:
    """One run with so many readers."""
    with server(url, HOLDFAST_MAX_STREAMS=str(max(2 * streams, 1))) as (port, process):
        keys = [str(post_json(port, "/v1/keys", {"name": f"k{n}", "scopes": ["read"]})["apiKey"]) for n in range(KEYS)]
        run_claims(port, Size(events_per_second=SUBJECTS, seconds=1, connections=4))  # every subject is there
        start = end_of_log(port)
        paths = [path_of(number, everything=everything) for number in range(streams)]
        asked = [(path, keys[number % KEYS]) for number, path in enumerate(paths)]
        with reading(port, asked) as readers:
            before = process.cpu_times()
            times = run_claims(port, size)
            after = process.cpu_times()
            last, moment = end_of_log(port), time.perf_counter()
            rss = process.memory_info().rss
            found = subjects_of(port, start, last)
            every = list(range(start + 1, last + 1))
            wanted = [every if everything else found[number % SUBJECTS] for number in range(streams)]
            readers.wait_for(sum(map(len, wanted)))
            late = time.perf_counter() - moment
            report = readers.stop()
    wrong = sum(seen != should for seen, should in zip(report["seen"], wanted, strict=True))
    return Outcome(
        p50=times[len(times) // 2],
        p99=times[int(len(times) * 0.99)],
        written=last - start,
        wrong=wrong,
        cut=report["cut"],
        late=late,
        rss=rss,
        server_cpu=(after.user + after.system) - (before.user + before.system),
        readers_cpu=report["cpu"],
    )


def run_claims(port: int, size: Size) -> list[float]:
    """How long each took, in order of length."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Pacer(port, size.events_per_second, size.seconds, size.connections).run())


def path_of(number: int, *, everything: bool) -> str:
    return "/v1/events" if everything else f"/v1/events?subject=lease:subject-{number % SUBJECTS}"


class Readers:
    """Readers in a process of their own."""

    def __init__(self, port: int, streams: list[tuple[str, str]]) -> None:
        command = [sys.executable, "-m", "bench.readers", str(port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._ask(json.dumps(streams)) == "open\n", "not every stream was opened"

    def wait_for(self, count: int) -> None:
        """Until they have seen so much, or nothing more comes."""
        deadline = time.monotonic() + PATIENCE
        while int(self._ask("count")) < count and time.monotonic() < deadline:
            time.sleep(0.05)

    def stop(self) -> dict[str, Any]:
        """What they saw."""
        report: dict[str, Any] = json.loads(self._ask("stop"))
        return report

    def close(self) -> None:
        """End them, however far they are."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        return self._process.stdout.readline()


@contextmanager
def reading(port: int, streams: list[tuple[str, str]]) -> Iterator[Readers]:
    """Readers of these streams, gone afterwards."""
    readers = Readers(port, streams)
    try:
        yield readers
    finally:
        readers.close()


def end_of_log(port: int) -> int:
    """The newest event's number."""
    return int(get_json(port, "/v1/events?request_id=-&limit=1")["nextCursor"])


def subjects_of(port: int, start: int, last: int) -> list[list[int]]:
    """Which events each subject has in the log."""
    found: list[list[int]] = [[] for _ in range(SUBJECTS)]
    while start < last:
        page = get_json(port, f"/v1/events?after={start}&limit=1000")
        for event in page["events"]:
            name = event["subject"]
            if name.startswith("lease:subject-") and event["seq"] <= last:
                found[int(name.rpartition("-")[2])].append(event["seq"])
        start = page["nextCursor"]
    return found


def main() -> None:
    """Measure all three, and compare."""
    size = Size()
    with tempfile.TemporaryDirectory(prefix="hf-streams-", dir=Path.cwd()) as folder, stores(folder) as new_store:
        alone = measure(new_store(), size, 0)
        tell("nobody reads", alone, alone)
        tell(f"{size.readers} readers of one subject each", measure(new_store(), size, size.readers), alone)
        everything = measure(new_store(), size, size.of_everything, everything=True)
        tell(f"{size.of_everything} readers of everything", everything, alone)


def tell(what: str, outcome: Outcome, alone: Outcome) -> None:
    """One line."""
    print(
        f"{what:<34}{outcome.written:7} events  p50 {outcome.p50 * 1000:6.2f} ms  p99 {outcome.p99 * 1000:7.2f} ms"
        f"  ({outcome.p99 / alone.p99:4.2f} of alone)  wrong {outcome.wrong}  cut {outcome.cut}"
        f"  RSS {outcome.rss / 2**20:.0f} MB  CPU {outcome.server_cpu:.1f} s, readers {outcome.readers_cpu:.1f} s",
        flush=True,
    )


@contextmanager
def stores(folder: str) -> Iterator[Any]:
    """Call it for a new store's address."""
    if sys.argv[1:] != ["postgres"]:
        numbers = itertools.count()
        yield lambda: f"sqlite:///{folder}/{next(numbers)}.db"
        return
    from tests.postgres import Postgres  # noqa: PLC0415 - slow to import

    database = Postgres()
    try:
        yield database.new_database
    finally:
        database.remove()


if __name__ == "__main__":
    main()
