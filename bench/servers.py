"""Several servers on one PostgreSQL: `python -m bench.servers`.

Claims per second of 1, 2 and 4 servers with the same number of connections in all, by one account and by a hundred, and
what each claim costs: CPU of the servers and of PostgreSQL, and how many claims share a commit. Writers of one account
meet at its event counter, which is locked from the last statement of a transaction until its COMMIT is flushed: so the
time in the flush is about how long the counter is held, and the time in which a transaction waits for a lock is what
that costs the others. Both come from samples: the mean number of transactions in that state, divided by commits/s.
"""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import psycopg
from msgspec.structs import replace

from bench import accounts, document, scripts
from bench.figures import Figures
from bench.load import Result, run, start
from bench.page import machine, number, table
from bench.serving import Server, cpu_seconds
from bench.stores import main_process, private_postgres
from tests.postgres import Postgres

SECONDS = float(os.environ.get("HOLDFAST_BENCH_SECONDS", "3"))
ROUNDS = int(os.environ.get("HOLDFAST_BENCH_ROUNDS", "3"))
SERVERS = (1, 2, 4)
ACCOUNTS = (1, 100)
CONNECTIONS = 128
SAMPLE_SECONDS = 0.01

STATES = """
SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'),
    count(*) FILTER (WHERE wait_event IN ('WalSync', 'WalWrite', 'WALWrite'))
FROM pg_stat_activity WHERE datname = current_database()
"""
WRITERS = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
"""The next id of a transaction: only transactions that write get one."""


def main(arguments: list[str] | None = None) -> None:
    """Measure every number of servers in turn and print one table."""
    parser = argparse.ArgumentParser(prog="python -m bench.servers")
    parser.add_argument("--servers", type=int, nargs="+", default=SERVERS)
    parser.add_argument("--accounts", type=int, nargs="+", default=ACCOUNTS)
    parser.add_argument("--document", action="store_true", help="write the table into docs/explanation/speed.md")
    options = parser.parse_args(arguments)
    figures = Figures()
    with private_postgres() as database:
        for _ in range(ROUNDS):
            for count in options.servers:
                for keys in options.accounts:
                    measure(figures, database, count, keys)
    shown = f"{machine()}; PostgreSQL on the same machine, {CONNECTIONS} connections in all.\n\n"
    shown += report(figures, options.servers, options.accounts)
    print(shown)
    if options.document:
        document.replace_part("servers", shown)


def measure(figures: Figures, database: Postgres, count: int, keys: int) -> None:
    """Claims on a new database through so many servers, by the keys of so many accounts in turn."""
    url = database.new_database()
    with ExitStack() as stack:
        servers = [stack.enter_context(accounts.open_server(url)) for _ in range(count)]
        registered = accounts.register(servers[0].port, keys)
        for one in servers:  # a server admits more requests of keys that it knows
            run(one.port, replace(scripts.claims(registered), is_once=True), connections=8, seconds=SECONDS)
        backend = main_process(database)
        monitor = stack.enter_context(psycopg.connect(url, autocommit=True))
        before = sum(one.cpu_seconds() for one in servers), cpu_seconds(backend), commits(monitor)
        with sampled_states(url) as samples:
            results = claim_everywhere(servers, registered)
        after = sum(one.cpu_seconds() for one in servers), cpu_seconds(backend), commits(monitor)
    name, claims = f"{count}.{keys}", sum(result.answered for result in results)
    figures.add(f"{name}.rate", sum(result.rate for result in results))
    figures.add(f"{name}.servers", (after[0] - before[0]) / claims)
    figures.add(f"{name}.postgres", (after[1] - before[1]) / claims)
    committed = max(after[2] - before[2], 1)
    figures.add(f"{name}.batch", claims / committed)
    seconds_per_sample = results[0].seconds / max(len(samples), 1)
    for what, counts in zip(("waiting", "flushing"), zip(*samples, strict=True), strict=False):
        figures.add(f"{name}.{what}", sum(counts) * seconds_per_sample / committed)


def claim_everywhere(servers: Sequence[Server], keys: Sequence[str]) -> list[Result]:
    """Claims through all servers at once; each has its part of the connections."""
    part = CONNECTIONS // len(servers)
    runs = [start(one.port, scripts.claims(keys), connections=part, seconds=SECONDS) for one in servers]
    return [one.result() for one in runs]


def commits(monitor: psycopg.Connection) -> int:
    """Transactions that have written so far."""
    row = monitor.execute(WRITERS).fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def sampled_states(url: str) -> Iterator[list[tuple[int, int]]]:
    """Count, again and again inside the block, how many transactions wait for a lock and how many are in a flush."""
    samples: list[tuple[int, int]] = []
    over = threading.Event()

    def sample() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.wait(SAMPLE_SECONDS):
                samples.extend(connection.execute(STATES).fetchall())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def report(figures: Figures, servers: Sequence[int], keys: Sequence[int]) -> str:
    """One line for each number of servers and of accounts."""
    header = ["servers, accounts", "claims/s", "of one server", "servers' CPU µs", "PostgreSQL's CPU µs",
              "claims a commit", "ms in the flush", "ms waiting for a lock"]  # fmt: skip
    rows = []
    for count in servers:
        for many in keys:
            name = f"{count}.{many}"
            rows.append([
                f"{count}, {many}",
                number(figures.median(f"{name}.rate"), 0),
                number(figures.ratio(f"{name}.rate", f"{servers[0]}.{many}.rate"), 2),
                number(figures.median(f"{name}.servers") * 1e6, 0),
                number(figures.median(f"{name}.postgres") * 1e6, 0),
                number(figures.median(f"{name}.batch"), 1),
                number(figures.median(f"{name}.flushing") * 1e3, 2),
                number(figures.median(f"{name}.waiting") * 1e3, 2),
            ])  # fmt: skip
    return table(header, rows)


if __name__ == "__main__":
    main()
