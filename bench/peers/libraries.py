"""Queues from PyPI: PgQueuer on PostgreSQL and persist-queue on SQLite, in a virtual environment of their own."""

from __future__ import annotations

import filecmp
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import QUEUES, Measure, Outcome, Peer
from bench.stores import private_postgres
from bench.tree import ROOT

ENVIRONMENT = ROOT / ".venv" / "peers"
REQUIREMENTS = ROOT / "requirements" / "peers.txt"
PROGRAMS = Path(__file__).parent / "programs"


def is_installed() -> bool:
    """Whether the virtual environment has the packages of the lock file."""
    installed = ENVIRONMENT / "installed"
    return installed.exists() and filecmp.cmp(installed, REQUIREMENTS, shallow=False)


def install() -> None:
    """Make the virtual environment anew from the lock file."""
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    pip = [ENVIRONMENT / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([*pip, "install", "--require-hashes", "-r", REQUIREMENTS], check=True)
    shutil.copy(REQUIREMENTS, ENVIRONMENT / "installed")


@contextmanager
def open_pgqueuer(_folder: Path) -> Iterator[Measure]:
    """PgQueuer with its recommended driver on a PostgreSQL of its own."""
    with private_postgres() as database:
        yield lambda connections, seconds: measure("pgqueuer_cycles.py", database.new_database(), connections, seconds)


@contextmanager
def open_persist_queue(folder: Path) -> Iterator[Measure]:
    """persist-queue's queue with acknowledgements on an SQLite file. It runs in the caller's process."""
    yield lambda connections, seconds: measure("persist_queue_cycles.py", str(folder / "queue"), connections, seconds)


def measure(program: str, place: str, connections: int, seconds: float) -> Outcome:
    """Run a program of the virtual environment; it prints cycles per second, and CPU of its process per cycle."""
    command = [ENVIRONMENT / "bin" / "python", PROGRAMS / program, place, str(connections), str(seconds)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Outcome(**json.loads(output))


PEERS = (
    Peer("PgQueuer (CPU of its process alone)", QUEUES, open_pgqueuer, is_from_pypi=True),
    Peer("persist-queue on SQLite, in process", QUEUES, open_persist_queue, is_from_pypi=True),
)
