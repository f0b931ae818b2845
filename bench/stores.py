"""New stores to measure: SQLite files in a temporary folder on this disk, and databases of a private PostgreSQL."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.postgres import Postgres

IN_MEMORY = False
"""Whether PostgreSQL's files are in memory, where nothing is flushed: for tests of the benchmark itself."""

NewStore = Callable[[], str]
"""Gives the address of one more empty store."""


@contextmanager
def new_folder() -> Iterator[Path]:
    """A folder below the current one, because /tmp may be in memory, where a flush costs nothing."""
    with tempfile.TemporaryDirectory(prefix="hf-bench-", dir=Path.cwd()) as folder:
        yield Path(folder)


def new_files(folder: Path) -> NewStore:
    """New SQLite files."""
    return lambda: f"sqlite:///{folder}/{uuid.uuid4().hex}.db"


@contextmanager
def private_postgres() -> Iterator[Postgres]:
    """A PostgreSQL server inside the block, with its files on disk."""
    database = Postgres(in_memory=IN_MEMORY)
    try:
        yield database
    finally:
        database.remove()


def main_process(database: Postgres) -> psutil.Process:
    """The process that started all others of this PostgreSQL."""
    return psutil.Process(int((database.home / "data" / "postmaster.pid").read_text().split()[0]))


@contextmanager
def new_stores(kind: str, folder: Path) -> Iterator[NewStore]:
    """New stores of one kind: `sqlite` or `postgres`."""
    if kind == "sqlite":
        yield new_files(folder)
        return
    with private_postgres() as database:
        yield database.new_database
