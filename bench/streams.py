"""Event streams under load: whether every reader receives every event once, and how much readers slow writers down.

`python -m bench.streams [sqlite|postgres]` sends claims at a fixed rate, each an event of one of a hundred subjects:
once without readers, once with a thousand readers of one subject each, and once with fifty readers of all events.
Latency is measured from the time a claim was due, so a server that falls behind cannot hide it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import uvloop

from bench.scripts import KEY, request_bytes
from bench.serving import get_json, post_json, server
from bench.stores import new_folder, new_stores
from bench.tree import PRESENT, Tree

HOST = "127.0.0.1"

SUBJECTS = 100
KEYS = 10
READ_TIMEOUT = 30.0


class Size(msgspec.Struct, frozen=True):
    """Numbers of readers and of events."""

    readers: int = 1_000
    all_event_readers: int = 50
    events_per_second: int = 1_000
    seconds: float = 10.0
    connections: int = 32


class Outcome(msgspec.Struct):
    """Measurements of one run."""

    p50: float
    p99: float
    written: int
    wrong: int
    """Readers that missed an event, or received one twice or out of order."""
    closed: int
    late: float
    """Seconds from the last write until every reader had received all events."""
    rss: int
    server_cpu: float
    readers_cpu: float


class Pacer:
    """Sends claims at a fixed rate over several connections; latency counts from the time a claim was due."""

    def __init__(self, port: int, rate: int, seconds: float, connections: int) -> None:
        self._port = port
        self._offsets = iter([number / rate for number in range(int(rate * seconds))])
        self._numbers = itertools.count()
        self._connections = connections
        self.latencies: list[float] = []

    async def run(self) -> list[float]:
        self._began = time.perf_counter() + 0.1
        await asyncio.gather(*(self._send_all() for _ in range(self._connections)))
        return sorted(self.latencies)

    async def _send_all(self) -> None:
        reader, writer = await asyncio.open_connection(HOST, self._port)
        for offset in self._offsets:
            due = self._began + offset
            await asyncio.sleep(max(due - time.perf_counter(), 0))
            writer.write(claim(next(self._numbers)))
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            self.latencies.append(time.perf_counter() - due)
        writer.close()


def claim(number: int) -> bytes:
    """A claim by the holder of a lock renews it: after the first claim, each is one event `renewed`."""
    return request_bytes(f"/locks/subject-{number % SUBJECTS}/acquire", b'{"ttl_seconds":600}', KEY)


def measure(url: str, size: Size, streams: int, *, everything: bool = False, tree: Tree = PRESENT) -> Outcome:
    """One run with this many readers, of all events or of one subject each."""
    with server(url, tree=tree, HOLDFAST_MAX_STREAMS=str(max(2 * streams, 1))) as one:
        port = one.port
        keys = [str(post_json(port, "/v1/keys", {"name": f"k{n}", "scopes": ["read"]})["apiKey"]) for n in range(KEYS)]
        run_claims(port, Size(events_per_second=SUBJECTS, seconds=1, connections=4))  # creates every subject
        start = end_of_log(port)
        paths = [path_of(number, everything=everything) for number in range(streams)]
        requests = [(path, keys[number % KEYS]) for number, path in enumerate(paths)]
        with reading(port, requests) as readers:
            before = one.cpu_seconds()
            latencies = run_claims(port, size)
            after = one.cpu_seconds()
            last, written_at = end_of_log(port), time.perf_counter()
            rss = one.memory()
            by_subject = subjects_of(port, start, last)
            every = list(range(start + 1, last + 1))
            expected = [every if everything else by_subject[number % SUBJECTS] for number in range(streams)]
            readers.wait_for(sum(map(len, expected)))
            late = time.perf_counter() - written_at
            report = readers.stop()
    wrong = sum(ids != events for ids, events in zip(report["ids"], expected, strict=True))
    return Outcome(
        p50=latencies[len(latencies) // 2],
        p99=latencies[int(len(latencies) * 0.99)],
        written=last - start,
        wrong=wrong,
        closed=report["closed"],
        late=late,
        rss=rss,
        server_cpu=after - before,
        readers_cpu=report["cpu"],
    )


def run_claims(port: int, size: Size) -> list[float]:
    """The latency of each claim, shortest first."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Pacer(port, size.events_per_second, size.seconds, size.connections).run())


def path_of(number: int, *, everything: bool) -> str:
    return "/v1/events" if everything else f"/v1/events?subject=lease:subject-{number % SUBJECTS}"


class Readers:
    """The process `bench.readers`."""

    def __init__(self, port: int, streams: list[tuple[str, str]]) -> None:
        command = [sys.executable, "-m", "bench.readers", str(port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._send(json.dumps(streams)) == "open\n", "not every stream was opened"

    def wait_for(self, count: int) -> None:
        """Wait until the readers have received this many events, at most READ_TIMEOUT seconds."""
        deadline = time.monotonic() + READ_TIMEOUT
        while int(self._send("count")) < count and time.monotonic() < deadline:
            time.sleep(0.05)

    def stop(self) -> dict[str, Any]:
        """Stop reading; the report of the readers."""
        report: dict[str, Any] = json.loads(self._send("stop"))
        return report

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.communicate()

    def _send(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        return self._process.stdout.readline()


@contextmanager
def reading(port: int, streams: list[tuple[str, str]]) -> Iterator[Readers]:
    """Read these streams inside the block."""
    readers = Readers(port, streams)
    try:
        yield readers
    finally:
        readers.close()


def end_of_log(port: int) -> int:
    """Sequence number of the newest event."""
    return int(get_json(port, "/v1/events?request_id=-&limit=1")["nextCursor"])


def subjects_of(port: int, start: int, last: int) -> list[list[int]]:
    """Sequence numbers of the events of each subject."""
    by_subject: list[list[int]] = [[] for _ in range(SUBJECTS)]
    while start < last:
        page = get_json(port, f"/v1/events?after={start}&limit=1000")
        for event in page["events"]:
            name = event["subject"]
            if name.startswith("lease:subject-") and event["seq"] <= last:
                by_subject[int(name.rpartition("-")[2])].append(event["seq"])
        start = page["nextCursor"]
    return by_subject


def main() -> None:
    """Measure the three cases and print each compared with the first."""
    size = Size()
    kind = (sys.argv[1:] or ["sqlite"])[0]
    with new_folder() as folder, new_stores(kind, folder) as new_store:
        alone = measure(new_store(), size, 0)
        print_outcome("no readers", alone, alone)
        print_outcome(f"{size.readers} readers of one subject each", measure(new_store(), size, size.readers), alone)
        everything = measure(new_store(), size, size.all_event_readers, everything=True)
        print_outcome(f"{size.all_event_readers} readers of all events", everything, alone)


def print_outcome(what: str, outcome: Outcome, alone: Outcome) -> None:
    """Print one line, with p99 compared to that of a run without readers."""
    print(
        f"{what:<34}{outcome.written:7} events  p50 {outcome.p50 * 1000:6.2f} ms  p99 {outcome.p99 * 1000:7.2f} ms"
        f"  ({outcome.p99 / alone.p99:4.2f} of that without readers)  wrong {outcome.wrong}  closed {outcome.closed}"
        f"  RSS {outcome.rss / 2**20:.0f} MB  CPU {outcome.server_cpu:.1f} s, readers {outcome.readers_cpu:.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
