"""`make bench`: every figure next to what it is measured against, and whether the aim is met.

Every answer counted here was flushed to disk before it was given.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import engine, raw
from bench.load import post, run
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from tests.postgres import Postgres

SECONDS = float(os.environ.get("HOLDFAST_BENCH_SECONDS", "4"))
KEY = "bench-root-key-0123456789abcdef"
CONNECTIONS = 128
CALLERS = 64

missed: list[str] = []


def main() -> None:
    """Measure everything, print it, and say which aims were missed."""
    with tempfile.TemporaryDirectory(prefix="hf-bench-", dir=Path.cwd()) as folder:
        database = Postgres()
        try:
            measure(Path(folder), database)
        finally:
            database.remove()
    if missed:
        print(f"\nbelow their aim: {', '.join(missed)}")


def measure(folder: Path, database: Postgres) -> None:
    """The doors, then the engine, on both stores."""
    flush = raw.flush_seconds(folder)
    print(f"one flush of this disk                {flush * 1000:8.2f} ms (median fdatasync after 4 KiB)\n")
    bare, door = echo("bare"), echo("door")
    print(f"bare uvicorn echo, {CONNECTIONS} connections   {bare:8.0f} /s")
    tell("our door's echo", door, "/s", "of bare", door / bare, 0.5)
    stores: dict[str, Callable[[], str]] = {
        "SQLite": lambda: f"sqlite:///{folder}/{uuid.uuid4().hex}.db",
        "PostgreSQL": database.new_database,
    }
    for name, url in stores.items():
        print(f"\n{name}")
        doors(name, url(), door, flush)
        engines(name, url(), folder)


def doors(name: str, url: str, echoes: float, flush: float) -> None:
    """Over HTTP: claims at many connections, latency at one, claim and release in turn."""
    sqlite = name == "SQLite"
    with server(url) as port:
        many = run(port, claims(), connections=CONNECTIONS, seconds=SECONDS)
        tell("durable claims over HTTP", many.rate, "/s", "of echo", many.rate / echoes, 0.4 if sqlite else None)
        one = run(port, claims(), connections=1, seconds=SECONDS)
        allowed = flush + (0.001 if sqlite else 0.0025)
        tell("one claim alone, median", one.median * 1000, "ms", "of allowed", one.median / allowed, 1.0, less=True)
    with server(url) as port:
        cycles = run(port, renewals(port), connections=32, seconds=SECONDS)
        print(f"  {'renewals, 32 connections':<36}{cycles.rate:8.0f} /s   p99 {cycles.p99 * 1000:.1f} ms")


def engines(name: str, url: str, folder: Path) -> None:
    """In process: batches against one command a transaction, and that against raw commits."""
    sqlite = name == "SQLite"

    def store() -> SqliteStore | PostgresStore:
        made = SqliteStore(url.removeprefix("sqlite:///")) if sqlite else PostgresStore(url)
        made.open()
        return made

    def rate(**options: int) -> float:
        opened = store()
        try:
            return engine.claims_per_second(opened, callers=CALLERS, seconds=SECONDS, **options)
        finally:
            opened.close()

    commits = raw.sqlite_commits(folder, SECONDS) if sqlite else raw.postgres_commits(url, SECONDS)
    print(f"  {'raw one-row commits':<36}{commits:8.0f} /s")
    single = rate(max_batch=1)
    tell("engine, one claim a transaction", single, "/s", "of raw", single / commits, 0.5)
    batched = rate()
    tell(f"engine, batching, {CALLERS} callers", batched, "/s", "x single", batched / single, 4.0)


def echo(kind: str) -> float:
    """Echoes a second of one of the two servers to compare with."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.echoes", kind, str(port)])
    try:
        wait_for(port)
        request = post("/echo", b'{"owner":"bench"}', KEY)
        return run(port, lambda: request, connections=CONNECTIONS, seconds=SECONDS).rate
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextmanager
def server(url: str) -> Iterator[int]:
    """A Holdfast server on that store."""
    port = free_port()
    command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port), "--store", url]
    environment = os.environ | {"HOLDFAST_ROOT_KEY": KEY}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def claims() -> Callable[[], bytes]:
    """Claims of jobs nobody has claimed before."""
    numbers, prefix = itertools.count(), uuid.uuid4().hex[:8]
    return lambda: post(f"/v1/jobs/{prefix}/{next(numbers)}/claim", b'{"owner":"bench"}', KEY)


def renewals(port: int) -> Callable[[], bytes]:
    """Heartbeats of jobs claimed beforehand, each in turn."""
    prepared = []
    for number in range(64):
        name = f"renew-{uuid.uuid4().hex[:8]}-{number}"
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/jobs/{name}/claim",
            data=b'{"owner":"bench"}',
            headers={"content-type": "application/json", "authorization": f"Bearer {KEY}"},
        )
        lease = json.load(urllib.request.urlopen(request))["lease_id"]
        prepared.append(post(f"/v1/jobs/{name}/heartbeat", json.dumps({"lease_id": lease}).encode(), KEY))
    turns = itertools.cycle(prepared)
    return lambda: next(turns)


def tell(
    what: str, figure: float, unit: str, against: str, ratio: float, aim: float | None = None, *, less: bool = False
) -> None:
    """One line: the figure, the ratio, the aim."""
    met = aim is None or (ratio <= aim if less else ratio >= aim)
    if not met:
        missed.append(what)
    verdict = "" if aim is None else f"(aim {'≤' if less else '≥'} {aim:g}: {'met' if met else 'MISSED'})"
    digits = 2 if unit == "ms" else 0
    print(f"  {what:<36}{figure:8.{digits}f} {unit:<3} {ratio:6.2f} {against} {verdict}")


def free_port() -> int:
    """A port nobody uses just now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def wait_for(port: int) -> None:
    """Until the server answers."""
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.05)
        else:
            return


if __name__ == "__main__":
    main()
