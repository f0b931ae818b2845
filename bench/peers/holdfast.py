"""Holdfast itself among the others, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench import scripts, tasks
from bench.peers.peer import LOCKS, QUEUES, Measure, Outcome, Peer, measured_by_load
from bench.scripts import Load
from bench.serving import server
from bench.stores import main_process, private_postgres


def on_sqlite(new_load: Callable[[], Load]) -> Callable[[Path], AbstractContextManager[Measure]]:
    """A server on an SQLite file in the folder."""

    @contextmanager
    def open_server(folder: Path) -> Iterator[Measure]:
        with server(f"sqlite:///{folder}/store.db") as one:
            yield measured_by_load(one.port, [one.process], new_load)

    return open_server


def on_postgres(new_load: Callable[[], Load]) -> Callable[[Path], AbstractContextManager[Measure]]:
    """A server on a PostgreSQL of its own, whose CPU counts as well."""

    @contextmanager
    def open_server(_folder: Path) -> Iterator[Measure]:
        with private_postgres() as database, server(database.new_database()) as one:
            yield measured_by_load(one.port, [one.process, main_process(database)], new_load)

    return open_server


@contextmanager
def open_hundreds(folder: Path) -> Iterator[Measure]:
    """Tasks in hundreds on an SQLite file. More callers than four would only wait for one another."""
    with server(f"sqlite:///{folder}/store.db") as one:

        def measure(connections: int, seconds: float) -> Outcome:
            before = one.cpu_seconds()
            done, elapsed = tasks.cycles(one.port, connections=min(connections, 4), seconds=seconds)
            return Outcome(done / elapsed, (one.cpu_seconds() - before) / done)

        yield measure


PEERS = (
    Peer("Holdfast on SQLite, locks", LOCKS, on_sqlite(scripts.lock_cycles)),
    Peer("Holdfast on SQLite, jobs", LOCKS, on_sqlite(scripts.job_cycles)),
    Peer("Holdfast on PostgreSQL, locks", LOCKS, on_postgres(scripts.lock_cycles)),
    Peer("Holdfast on SQLite, tasks", QUEUES, on_sqlite(scripts.task_cycles)),
    Peer("Holdfast on SQLite, tasks in hundreds", QUEUES, open_hundreds),
    Peer("Holdfast on PostgreSQL, tasks", QUEUES, on_postgres(scripts.task_cycles)),
)
