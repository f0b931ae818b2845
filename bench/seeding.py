"""Fills a store with many rows by SQL: copies of rows that a server wrote, under new names.

Only what makes a row another one is changed, so this knows little of the schema. The copied events have sequence
numbers below zero: they lie in the same table and indexes, and the account's counter stays as it is. `holdfast verify`
would refuse such a store; it serves only to be measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import psycopg

from bench.serving import post_json, server

CHUNK = 100_000
YEARS = 10 * 365 * 24 * 3600 * 1_000_000
JOB, TYPE = "sample", "bench"

Run = Callable[[str], Any]


def seed(url: str, leases: int, tasks: int, events: int) -> None:
    """Let a server make a new store and one row of each kind, then copy these rows."""
    with server(url) as one:
        post_json(one.port, f"/v1/jobs/{JOB}/claim", {"owner": "bench"})
        task = post_json(one.port, "/v1/tasks", {"type": TYPE, "payload": {"document": "doc-1842"}})["id"]
    with connection(url) as (run, columns_of):
        # Held for years, so that nothing expires while it is measured.
        lease = {"id": "'seed/' || n", "expires_at": f"expires_at + {YEARS}"}
        copy(run, columns_of("leases"), "leases", f"id = '{JOB}'", lease, leases)
        copy(run, columns_of("tasks"), "tasks", f"id = '{task}'", {"id": f"'{task[:-10]}' || n"}, tasks)
        event = {"subject": "'lease:seed/' || n", "seq": "- n"}
        copy(run, columns_of("events"), "events", f"subject = 'lease:{JOB}'", event, events)
        if columns_of("task_counts"):
            run(f"UPDATE task_counts SET total = total + {tasks} WHERE type = '{TYPE}' AND state = 'pending'")


def copy(run: Run, columns: list[str], table: str, where: str, changes: dict[str, str], count: int) -> None:
    """Insert copies of one row, in the order of their names."""
    values = ", ".join(changes.get(column, column) for column in columns)
    for first in range(0, count, CHUNK):
        last = min(first + CHUNK, count)
        run(
            f"WITH RECURSIVE numbers (i) AS (SELECT {first + 1} UNION ALL SELECT i + 1 FROM numbers WHERE i < {last}),"
            f" names AS (SELECT i + 1000000000 AS n FROM numbers)"
            f" INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} CROSS JOIN names WHERE {where}"
        )


@contextmanager
def connection(url: str) -> Iterator[tuple[Run, Callable[[str], list[str]]]]:
    """A function that runs a statement, and one that lists the columns of a table."""
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as database:
            database.execute("SET session_replication_role = replica")  # no triggers
            names = "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position"
            yield database.execute, lambda table: [name for (name,) in database.execute(names, (table,))]
            database.execute("ANALYZE")
        return
    file = apsw.Connection(url.removeprefix("sqlite:///"))
    file.create_scalar_function("holdfast_writer", lambda *_: None)
    file.pragma("synchronous", "off")
    yield file.execute, lambda table: [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
    file.pragma("wal_checkpoint", "truncate")
    file.close()
