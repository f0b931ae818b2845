"""What every test may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.postgres import Postgres


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
