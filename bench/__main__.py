"""`make bench`: every measurement with its ratio to a simpler program, and whether the ratio reaches its target.

Every counted answer was durable: flushed to disk before it was sent.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path

from bench import baseline, cycles, engine, raw, tasks
from bench.load import post, run
from bench.serving import KEY, free_port, server, wait_until_listening
from holdfast.store.contract import Store
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from tests.postgres import Postgres

SECONDS = float(os.environ.get("HOLDFAST_BENCH_SECONDS", "2"))
ROUNDS = int(os.environ.get("HOLDFAST_BENCH_ROUNDS", "3"))
CONNECTIONS = 128
CALLERS = 64
LOOP_CONNECTIONS = 16

Figures = dict[str, list[float]]

missed_targets: list[str] = []


def main() -> None:
    """Measure everything, and print it with the targets that were missed.

    Both values of a ratio are measured in the same round, and the median over the rounds is reported, because the
    machine's speed changes by a factor of two within minutes.
    """
    with tempfile.TemporaryDirectory(prefix="hf-bench-", dir=Path.cwd()) as folder:
        database = Postgres(in_memory=False)
        try:
            flush = statistics.median(raw.flush_seconds(Path(folder)) for _ in range(ROUNDS))
            print(f"one flush (fdatasync after 4 KiB): {flush * 1000:.2f} ms; medians of {ROUNDS} rounds\n")
            report("SQLite", gather(lambda: one_round(Path(folder), f"sqlite:///{folder}/{uuid.uuid4().hex}.db")))
            report("PostgreSQL", gather(lambda: one_round(Path(folder), database.new_database())))
        finally:
            database.remove()
    if missed_targets:
        print(f"\nmissed their target: {', '.join(missed_targets)}")


def gather(measure: Callable[[], dict[str, float]]) -> Figures:
    """The figures of all rounds."""
    figures: Figures = {}
    for _ in range(ROUNDS):
        for name, figure in measure().items():
            figures.setdefault(name, []).append(figure)
    return figures


def one_round(folder: Path, url: str) -> dict[str, float]:
    """Every measurement once on one store, with its baselines."""
    figures = {"bare": echoes_per_second("bare"), "holdfast": echoes_per_second("holdfast")}
    with server(url, HOLDFAST_PLAN="bench", HOLDFAST_PLANS=str(plans(folder))) as (port, _):
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
    """Task measurements once on one store, with a plain queue table as baseline."""
    postgres = url.startswith("postgresql")
    figures = {
        "loop": baseline.cycles_per_second(url, LOOP_CONNECTIONS, SECONDS)
        if postgres
        else baseline.sqlite_cycles_per_second(folder, SECONDS),
        "cycles": on_store(url, lambda store: cycles.cycles_per_second(store, callers=CALLERS, seconds=SECONDS)),
    }
    with server(url) as (port, _):
        figures["hundreds"] = tasks.cycles_per_second(port, KEY, connections=4, many=100, seconds=SECONDS)
        ones = tasks.cycles_per_second(port, KEY, connections=CONNECTIONS, many=1, seconds=SECONDS)
    figures["requests"] = 3 * ones
    figures["echo"] = echoes_per_second("holdfast")
    return figures


def report(store: str, figures: Figures) -> None:
    """Print the lines of one store."""
    allowed = 0.001 if store == "SQLite" else 0.0025
    figures["allowed"] = [flush + allowed for flush in figures["flush"]]
    print(store)
    print_line(figures, "bare", f"empty request to bare uvicorn, {CONNECTIONS} connections", "/s")
    print_line(figures, "holdfast", "empty request to our server", "/s", "bare", 0.5)
    print_line(figures, "claims", "durable claims over HTTP", "/s", "holdfast", 0.4 if store == "SQLite" else None)
    print_line(figures, "limited", "the same for an account with limits", "/s", "claims", 0.85)
    print_line(figures, "renewals", "durable renewals, 32 connections", "/s")
    print_line(figures, "alone", f"single claim, of one flush and {allowed * 1000:g} ms", "ms", "allowed", 1.0)
    print_line(figures, "raw", "raw one-row commits", "/s")
    print_line(figures, "single", "engine, one claim per transaction", "/s", "raw", 0.5)
    print_line(figures, "batched", f"engine, batching, {CALLERS} callers", "/s", "single", 4.0)
    print("  tasks: cycles of create, claim, complete, with the event log")
    postgres = store == "PostgreSQL"
    loop = (
        f"plain SKIP LOCKED loop, {LOOP_CONNECTIONS} connections" if postgres else "plain loop, one row per transaction"
    )
    print_line(figures, "loop", loop, "/s")
    print_line(figures, "cycles", f"engine, {CALLERS} callers", "/s", "loop", 1.5 if postgres else 4.0)
    print_line(figures, "hundreds", "over HTTP, 100 tasks per request", "/s", "loop", 2.5 if postgres else None)
    print_line(figures, "requests", "over HTTP, one task per request (requests)", "/s", "echo", 0.35)
    print()


def print_line(
    figures: Figures, name: str, what: str, unit: str, baseline_name: str = "", target: float | None = None
) -> None:
    """Print the median, its ratio to the baseline, and the target: the most for a time, the least for a rate."""
    is_time = unit == "ms"
    figure = statistics.median(figures[name]) * (1000 if is_time else 1)
    line = f"  {what:<48}{figure:9.{2 if is_time else 0}f} {unit}"
    if baseline_name:
        ratio = median_ratio(figures[name], figures[baseline_name])
        line += f"  {ratio:6.2f} of {baseline_name}"
        if target is not None and not math.isnan(ratio):
            is_met = ratio <= target if is_time else ratio >= target
            line += f" (target {'≤' if is_time else '≥'} {target:g}: {'met' if is_met else 'MISSED'})"
            missed_targets.extend([] if is_met else [what])
    print(line, flush=True)


def median_ratio(measured: list[float], baselines: list[float]) -> float:
    """Median over the rounds whose baseline is not 0, as it may be in a very short round; NaN if there is none."""
    ratios = [value / base for value, base in zip(measured, baselines, strict=True) if base]
    return statistics.median(ratios) if ratios else math.nan


def engine_rate(url: str, **options: int) -> float:
    """Claims per second of the engine, without HTTP."""
    return on_store(url, lambda store: engine.claims_per_second(store, callers=CALLERS, seconds=SECONDS, **options))


def on_store(url: str, measure: Callable[[Store], float]) -> float:
    """Open the store in this process and measure."""
    store: SqliteStore | PostgresStore = (
        PostgresStore(url) if url.startswith("postgresql") else SqliteStore(url.removeprefix("sqlite:///"))
    )
    store.open()
    try:
        return measure(store)
    finally:
        store.close()


def echoes_per_second(kind: str) -> float:
    """Requests per second of one of the two echo servers."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.echoes", kind, str(port)])
    try:
        wait_until_listening(port)
        request = post("/echo", b'{"owner":"bench"}', KEY)
        return run(port, lambda: request, connections=CONNECTIONS, seconds=SECONDS).rate
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def plans(folder: Path) -> Path:
    """File with a plan that has every kind of limit, each too high to be reached."""
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


def claims(key: str = KEY) -> Callable[[], bytes]:
    """Requests that claim new jobs."""
    numbers, prefix = itertools.count(), uuid.uuid4().hex[:8]
    return lambda: post(f"/v1/jobs/{prefix}/{next(numbers)}/claim", b'{"owner":"bench"}', key)


def renewals(port: int) -> Callable[[], bytes]:
    """Requests that renew claimed jobs, one after the other."""
    requests = []
    for number in range(64):
        name = f"renew-{uuid.uuid4().hex[:8]}-{number}"
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/jobs/{name}/claim",
            data=b'{"owner":"bench"}',
            headers={"content-type": "application/json", "authorization": f"Bearer {KEY}"},
        )
        lease = json.load(urllib.request.urlopen(request))["lease_id"]
        requests.append(post(f"/v1/jobs/{name}/heartbeat", json.dumps({"lease_id": lease}).encode(), KEY))
    repeated = itertools.cycle(requests)
    return lambda: next(repeated)


if __name__ == "__main__":
    main()
