"""What every test may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
from tests.support import DrivenClock  # noqa: E402


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
