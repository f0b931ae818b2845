"""Cost against what is stored: `python -m bench.growth [sqlite|postgres] [--full]`.

Server CPU per request with 10³ to 10⁶ leases, tasks and events in the store, with many callers waiting, with many
accounts, and in memory as it fills, each beside the smallest case of the same run. `--full` adds 10⁷ leases.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from msgspec.structs import replace

from bench import accounts, document, scripts
from bench.figures import Figures
from bench.load import run
from bench.page import machine, number, table
from bench.requests import record
from bench.scripts import Load, get, request_bytes
from bench.seeding import seed
from bench.serving import Server, post_json, server
from bench.stores import NewStore, new_folder, new_stores
from bench.targets import GROWTH_LIMIT

SECONDS = float(os.environ.get("HOLDFAST_BENCH_SECONDS", "1"))
ROUNDS = int(os.environ.get("HOLDFAST_BENCH_ROUNDS", "3"))
SIZES = (1_000, 10_000, 100_000, 1_000_000)
FULL = 10_000_000
WAITERS = (0, 100, 1_000)
ACCOUNTS = (1, 100, 1_000)
FILLED = (0, 20_000)
IDLE = 0.1
"""CPU of an idle server, of one core, at most: callers that wait cost it a little."""
CONNECTIONS = 32
VERBS = ("claim", "heartbeat", "release", "task cycle", "list of jobs", "list of tasks", "page of events")


def main(arguments: list[str] | None = None) -> None:
    """Measure every kind of growth and print a table of each."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth")
    parser.add_argument("store", nargs="?", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--full", action="store_true", help="also with 10⁷ leases (several GB, some minutes)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--waiters", type=int, nargs="+", default=WAITERS)
    parser.add_argument("--accounts", type=int, nargs="+", default=ACCOUNTS)
    parser.add_argument("--filled", type=int, nargs="+", default=FILLED)
    parser.add_argument("--document", action="store_true", help="write the tables into docs/explanation/speed.md")
    options = parser.parse_args(arguments)
    parts = [f"{machine()}; {options.store}; server CPU in µs per request, {CONNECTIONS} connections."]
    print(parts[0], file=sys.stderr)
    with new_folder() as folder, new_stores(options.store, folder) as new_store:
        parts.append(by_rows(new_store, [*options.sizes, FULL] if options.full else options.sizes))
        parts.append(by_waiters(new_store, options.waiters))
        parts.append(by_accounts(new_store, options.accounts))
        parts.append(by_filling(options.filled))
    print("\n\n".join(parts))
    if options.document:
        document.replace_part("growth", "\n\n".join(parts))


def by_rows(new_store: NewStore, sizes: Sequence[int]) -> str:
    """Every request on stores with this many leases, tasks and events. Above 10⁶ there are more leases only."""
    figures = Figures()
    with ExitStack() as stack:
        servers = {}
        for size in sizes:
            url = new_store()
            seed(url, size, min(size, SIZES[-1]), min(size, SIZES[-1]))
            servers[size] = stack.enter_context(server(url))
        for _ in range(ROUNDS):
            for verb in VERBS:
                for size, one in servers.items():
                    measure(figures, verb, size, one)
    return report("rows", figures, VERBS, sizes)


def measure(figures: Figures, verb: str, size: int, one: Server) -> None:
    """One verb on one store."""
    options = {"connections": CONNECTIONS, "seconds": SECONDS}
    prefix = uuid.uuid4().hex[:8]
    loads = {
        "task cycle": scripts.task_cycles(),
        "list of jobs": Load([(get("/v1/jobs?limit=50"),)]),
        "list of tasks": Load([(get("/v1/tasks?limit=50"),)]),
        "page of events": Load([(get("/v1/events?limit=50"),)]),
    }
    if verb in loads:
        record(figures, f"{verb}.{size}", one, loads[verb], **options)
    elif verb == "claim":
        record(figures, f"{verb}.{size}", one, scripts.claims(), **options)
    else:
        held = record(Figures(), "", one, scripts.claims(prefix=prefix), **options).captures
        load = scripts.heartbeats(prefix, held[:256]) if verb == "heartbeat" else scripts.releases(prefix, held)
        record(figures, f"{verb}.{size}", one, load, **options)


def by_waiters(new_store: NewStore, counts: Sequence[int]) -> str:
    """Claims and releases of other names while callers wait for a job that is held, and for tasks."""
    figures = Figures()
    with ExitStack() as stack:
        servers = {count: stack.enter_context(server(new_store())) for count in counts}
        for one in servers.values():
            post_json(one.port, "/v1/jobs/held/claim", {"owner": "bench", "ttl_seconds": 3600})
        for _ in range(ROUNDS):
            for count, one in servers.items():
                load = scripts.job_cycles()
                with waiting(one.port, count):
                    wait_until_idle(one)  # until all of them wait
                    record(figures, f"job cycle.{count}", one, load, connections=CONNECTIONS, seconds=SECONDS)
                wait_until_idle(one)  # until all of them have left
    return report("waiters", figures, ("job cycle",), counts)


def wait_until_idle(one: Server) -> None:
    """Wait until the server has done what it was sent."""
    busy = 1.0
    while busy > IDLE:
        before = one.cpu_seconds()
        time.sleep(0.25)
        busy = (one.cpu_seconds() - before) / 0.25


@contextmanager
def waiting(port: int, count: int) -> Iterator[None]:
    """Callers that wait inside the block: half of them for a job, half for a task."""
    job = request_bytes("/v1/jobs/held/claim", b'{"owner":"waiter","wait_seconds":60}')
    task = request_bytes("/v1/tasks/claim", b'{"type":"never","worker_id":"w","wait_seconds":60}')
    with ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(count)]
        for index, connection in enumerate(connections):
            connection.sendall(task if index % 2 else job)
            if index % 50 == 0:  # more at once would be refused before they wait
                time.sleep(0.1)
        yield
        for connection in connections:
            connection.setblocking(False)  # noqa: FBT003 - the standard library's own parameter
            try:
                answer = connection.recv(1 << 12)
            except BlockingIOError:
                continue
            raise AssertionError(f"a caller did not wait: {answer!r}")


def by_filling(counts: Sequence[int]) -> str:
    """Claims on a store in memory that holds so many names already: claimed before, because no SQL reaches them."""
    figures = Figures()
    for _ in range(ROUNDS):
        with server("memory:") as one:
            filled = 0
            for count in counts:
                filled += run(one.port, scripts.claims(), connections=CONNECTIONS, seconds=SECONDS / 10).answered
                while filled < count:
                    filled += run(one.port, scripts.claims(), connections=CONNECTIONS, seconds=SECONDS / 2).answered
                load = scripts.claims()
                result = record(figures, f"claim.{count}", one, load, connections=CONNECTIONS, seconds=SECONDS)
                filled += result.answered
    return report("names in memory:", figures, ("claim",), counts)


def by_accounts(new_store: NewStore, counts: Sequence[int]) -> str:
    """Claims by the keys of many accounts in turn."""
    figures = Figures()
    with ExitStack() as stack:
        servers = {count: stack.enter_context(accounts.open_server(new_store())) for count in counts}
        keys = {count: accounts.register(one.port, count) for count, one in servers.items()}
        for count, one in servers.items():  # the first use of a key costs a look-up
            run(one.port, replace(scripts.claims(keys[count]), is_once=True), connections=CONNECTIONS, seconds=60)
        for _ in range(ROUNDS):
            for count, one in servers.items():
                load = scripts.claims(keys[count])
                record(figures, f"claim.{count}", one, load, connections=CONNECTIONS, seconds=SECONDS)
    return report("accounts", figures, ("claim",), counts)


def report(what: str, figures: Figures, verbs: Sequence[str], sizes: Sequence[int]) -> str:
    """CPU per request for every size, and the largest compared with the smallest."""
    first, last = sizes[0], sizes[-1]
    rows = []
    for verb in verbs:
        ratio = figures.ratio(f"{verb}.{last}.cpu", f"{verb}.{first}.cpu")
        verdict = "met" if ratio <= GROWTH_LIMIT else "MISSED"
        cells = [number(figures.median(f"{verb}.{size}.cpu") * 1e6, 0) for size in sizes]
        rows.append([verb, *cells, f"{ratio:.2f}", f"≤ {GROWTH_LIMIT}: {verdict}"])
    return table([what, *(f"{size:,}" for size in sizes), "ratio", ""], rows)


if __name__ == "__main__":
    main()
