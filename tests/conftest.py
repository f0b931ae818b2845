"""What every test may ask for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite(
    "tests.conformance",
    "tests.compat.orchestrion.expect",
    "tests.billing.buying",
    "tests.support",
    "tests.http.agent",
    "tests.http.replies",
    "tests.faults.ledger",
    "tests.compat.octostore.expect",
)

# After the line that makes their asserts speak.
from tests.lending import Lender  # noqa: E402
from tests.postgres import Postgres  # noqa: E402
from tests.proof_size import FULL  # noqa: E402
from tests.scheduling import Scheduling, sort_by_waiting  # noqa: E402
from tests.support import DrivenClock  # noqa: E402

MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - a file system in memory, where the machine has one
MEMORY_NEEDED = 2 << 30


def pytest_configure() -> None:
    """Keep temporary files in memory, where a commit does not wait for a disk.

    Tests kill processes, never the machine: what a process has written survives it on any file system. Power loss has
    its own proof (store/test_power_loss.py), and `make prove` uses the disk.
    """
    if not FULL and MEMORY_FOLDER.is_dir() and shutil.disk_usage(MEMORY_FOLDER).free >= MEMORY_NEEDED:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_FOLDER))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    sort_by_waiting(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for this run."""
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def new_postgres_database(postgres: Postgres) -> Callable[[], str]:
    """Call it for the address of a fresh, empty database."""
    return postgres.new_database


@pytest.fixture(scope="module")
def database(new_postgres_database: Callable[[], str]) -> str:
    """A database for a whole file; tests empty it rather than make their own."""
    return new_postgres_database()


@pytest.fixture(scope="module")
def lender(database: str) -> Iterator[Lender]:
    """Stores on that database, one after the other, which share its connections."""
    lender = Lender(database)
    yield lender
    lender.close()


@pytest.fixture
def clock() -> DrivenClock:
    """A clock that moves only when told to."""
    return DrivenClock()
