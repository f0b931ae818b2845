"""`make bench`: every figure next to what it is measured against, and whether the aim is met.

Every answer counted here was flushed to disk before it was given.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import baseline, cycles, engine, raw, tasks
from bench.load import post, run
from holdfast.store.contract import Store
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from tests.postgres import Postgres

SECONDS = float(os.environ.get("HOLDFAST_BENCH_SECONDS", "2"))
ROUNDS = int(os.environ.get("HOLDFAST_BENCH_ROUNDS", "3"))
KEY = "bench-root-key-0123456789abcdef"
CONNECTIONS = 128
CALLERS = 64
LOOP_CONNECTIONS = 16

Figures = dict[str, list[float]]

missed: list[str] = []


def main() -> None:
    """Measure everything, print it, and say which aims were missed.

    What is compared is measured side by side, round after round, and the median of the rounds' ratios counts: the
    machine's speed wanders by a factor of two within minutes.
    """
    with tempfile.TemporaryDirectory(prefix="hf-bench-", dir=Path.cwd()) as folder:
        database = Postgres()
        try:
            flush = statistics.median(raw.flush_seconds(Path(folder)) for _ in range(ROUNDS))
            print(f"one flush (fdatasync after 4 KiB): {flush * 1000:.2f} ms; medians of {ROUNDS} rounds\n")
            report("SQLite", gather(lambda: one_round(Path(folder), f"sqlite:///{folder}/{uuid.uuid4().hex}.db")))
            report("PostgreSQL", gather(lambda: one_round(Path(folder), database.new_database())))
        finally:
            database.remove()
    if missed:
        print(f"\nbelow their aim: {', '.join(missed)}")


def gather(measure: Callable[[], dict[str, float]]) -> Figures:
    """The figures of all rounds."""
    figures: Figures = {}
    for _ in range(ROUNDS):
        for name, figure in measure().items():
            figures.setdefault(name, []).append(figure)
    return figures


def one_round(folder: Path, url: str) -> dict[str, float]:
    """Everything once on one store, with what it is compared to right beside it."""
    figures = {"bare": echo("bare"), "door": echo("door")}
    with server(url, HOLDFAST_PLAN="bench", HOLDFAST_PLANS=str(plans(folder))) as port:
        figures["claims"] = run(port, claims(), connections=CONNECTIONS, seconds=SECONDS).rate
        figures["limited"] = run(port, claims(registered(port)), connections=CONNECTIONS, seconds=SECONDS).rate
        figures["flush"] = raw.flush_seconds(folder)
        figures["alone"] = run(port, claims(), connections=1, seconds=SECONDS).median
        figures["renewals"] = run(port, renewals(port), connections=32, seconds=SECONDS).rate
    figures["raw"] = (
        raw.postgres_commits(url, SECONDS) if url.startswith("postgresql") else raw.sqlite_commits(folder, SECONDS)
    )
    figures["single"] = engine_rate(url, max_batch=1)
    figures["batched"] = engine_rate(url)
    return figures | task_round(folder, url)


def task_round(folder: Path, url: str) -> dict[str, float]:
    """Tasks once on one store, beside the plain loop that people write themselves."""
    postgres = url.startswith("postgresql")
    figures = {
        "loop": baseline.cycles_per_second(url, LOOP_CONNECTIONS, SECONDS)
        if postgres
        else baseline.sqlite_cycles_per_second(folder, SECONDS),
        "cycles": on_store(url, lambda store: cycles.cycles_per_second(store, callers=CALLERS, seconds=SECONDS)),
    }
    with server(url) as port:
        figures["hundreds"] = tasks.cycles_per_second(port, KEY, connections=4, many=100, seconds=SECONDS)
        ones = tasks.cycles_per_second(port, KEY, connections=CONNECTIONS, many=1, seconds=SECONDS)
    figures["requests"] = 3 * ones
    figures["echo"] = echo("door")
    return figures


def report(store: str, figures: Figures) -> None:
    """The lines of one store, each figure beside the aim it has."""
    allowed = 0.001 if store == "SQLite" else 0.0025
    figures["allowed"] = [flush + allowed for flush in figures["flush"]]
    print(store)
    tell(figures, "bare", f"bare uvicorn echo, {CONNECTIONS} connections", "/s")
    tell(figures, "door", "our door's echo", "/s", "bare", 0.5)
    tell(figures, "claims", "durable claims over HTTP", "/s", "door", 0.4 if store == "SQLite" else None)
    tell(figures, "limited", "the same under a plan with limits", "/s", "claims", 0.85)
    tell(figures, "renewals", "durable renewals, 32 connections", "/s")
    tell(figures, "alone", "one claim alone, of a flush + " + f"{allowed * 1000:g} ms", "ms", "allowed", 1.0)
    tell(figures, "raw", "raw one-row commits", "/s")
    tell(figures, "single", "engine, one claim a transaction", "/s", "raw", 0.5)
    tell(figures, "batched", f"engine, batching, {CALLERS} callers", "/s", "single", 4.0)
    print("  tasks: cycles of create, claim, complete, with the event log")
    postgres = store == "PostgreSQL"
    loop = f"plain SKIP LOCKED loop, {LOOP_CONNECTIONS} connections" if postgres else "plain loop, a row a transaction"
    tell(figures, "loop", loop, "/s")
    tell(figures, "cycles", f"engine, {CALLERS} callers", "/s", "loop", 1.5 if postgres else 4.0)
    tell(figures, "hundreds", "over HTTP, a hundred a request", "/s", "loop", 2.5 if postgres else None)
    tell(figures, "requests", "over HTTP, one a request (requests)", "/s", "echo", 0.35)
    print()


def tell(figures: Figures, name: str, what: str, unit: str, against: str = "", aim: float | None = None) -> None:
    """One line: the median figure, the median ratio, the aim. A time is to stay below its aim, a rate above."""
    time_like = unit == "ms"
    figure = statistics.median(figures[name]) * (1000 if time_like else 1)
    line = f"  {what:<42}{figure:9.{2 if time_like else 0}f} {unit}"
    if against:
        ratio = statistics.median(ours / theirs for ours, theirs in zip(figures[name], figures[against], strict=True))
        line += f"  {ratio:6.2f} of {against}"
        if aim is not None:
            met = ratio <= aim if time_like else ratio >= aim
            line += f" (aim {'≤' if time_like else '≥'} {aim:g}: {'met' if met else 'MISSED'})"
            missed.extend([] if met else [what])
    print(line, flush=True)


def engine_rate(url: str, **options: int) -> float:
    """Claims a second of the engine in process."""
    return on_store(url, lambda store: engine.claims_per_second(store, callers=CALLERS, seconds=SECONDS, **options))


def on_store(url: str, measure: Callable[[Store], float]) -> float:
    """Measure something on a store, without a server."""
    store: SqliteStore | PostgresStore = (
        PostgresStore(url) if url.startswith("postgresql") else SqliteStore(url.removeprefix("sqlite:///"))
    )
    store.open()
    try:
        return measure(store)
    finally:
        store.close()


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


def plans(folder: Path) -> Path:
    """A plan with every limit there is, none of which is ever reached."""
    limits = {"creates": 10**9, "claims": 10**9, "reads": 10**9, "mutations": 2 * 10**9, "heartbeats": 10**9}
    path = folder / "plans.toml"
    path.write_text(
        "[bench]\nmax_workers = 1000000\ntasks_per_month = 1000000000\n"
        + "".join(f"{name}_per_hour = {limit}\n" for name, limit in limits.items())
    )
    return path


def registered(port: int) -> str:
    """The key of a new account, which has limits."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/keys/register", data=b"", method="POST")
    return str(json.load(urllib.request.urlopen(request))["apiKey"])


@contextmanager
def server(url: str, **settings: str) -> Iterator[int]:
    """A Holdfast server on that store."""
    port = free_port()
    command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port), "--store", url]
    environment = os.environ | {"HOLDFAST_ROOT_KEY": KEY} | settings
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def claims(key: str = KEY) -> Callable[[], bytes]:
    """Claims of jobs nobody has claimed before."""
    numbers, prefix = itertools.count(), uuid.uuid4().hex[:8]
    return lambda: post(f"/v1/jobs/{prefix}/{next(numbers)}/claim", b'{"owner":"bench"}', key)


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
