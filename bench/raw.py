"""Baselines without Holdfast: the time of a disk flush, and one-row commits per second of each database."""

from __future__ import annotations

import os
import statistics
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import apsw
import psycopg


def flush_seconds(folder: Path, count: int = 300) -> float:
    """Median time of one fdatasync after appending 4 KiB."""
    descriptor = os.open(folder / "flush", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    times = []
    for _ in range(count):
        os.write(descriptor, bytes(4096))
        started = time.perf_counter()
        os.fdatasync(descriptor)
        times.append(time.perf_counter() - started)
    os.close(descriptor)
    return statistics.median(times)


def sqlite_commits(folder: Path, seconds: float) -> float:
    """One-row transactions per second: BEGIN IMMEDIATE, INSERT, COMMIT, each flushed."""
    connection = apsw.Connection(str(folder / f"raw-{uuid.uuid4().hex}.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")
    return _count(seconds, lambda: connection.execute("BEGIN IMMEDIATE; INSERT INTO t (body) VALUES ('x'); COMMIT"))


def postgres_commits(url: str, seconds: float) -> float:
    """The same on PostgreSQL, in three statements on one connection, as a plain program would."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS t (id bigserial PRIMARY KEY, body text)")

        def commit() -> None:
            with connection.transaction():
                connection.execute("INSERT INTO t (body) VALUES ('x')")

        return _count(seconds, commit)


def _count(seconds: float, commit: Callable[[], object]) -> float:
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        commit()
        done += 1
    return done / (time.perf_counter() - started)
