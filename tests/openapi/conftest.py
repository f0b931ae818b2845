"""One server per store, and things on it that really exist."""

import pytest

from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY
from tests.openapi.sample_resources import Belongings

PLENTY = {
    "ROOT_KEY": ROOT_KEY,
    "MAX_LOCKS_PER_USER": "1000000",
    "MAX_PUBLIC_ELECTIONS": "1000000",
    "PUBLIC_ELECTION_REQUESTS_PER_MINUTE": "1000000",
}


@pytest.fixture(scope="session")
def sqlite_belongings(tmp_path_factory):
    """A caller whose key opens everything, and what is theirs."""
    yield from owned(f"sqlite:///{tmp_path_factory.mktemp('openapi')}/x.db")


@pytest.fixture(scope="session")
def postgres_belongings(new_postgres_database):
    yield from owned(new_postgres_database())


def owned(store):
    server = Server(store, **PLENTY).start()
    yield Belongings(server)
    server.close()
