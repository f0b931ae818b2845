"""One server for each store, and existing resources for the requests."""

import pytest

from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY
from tests.openapi.sample_resources import SampleResources

HIGH_LIMITS = {
    "ROOT_KEY": ROOT_KEY,
    "MAX_LOCKS_PER_USER": "1000000",
    "MAX_PUBLIC_ELECTIONS": "1000000",
    "PUBLIC_ELECTION_REQUESTS_PER_MINUTE": "1000000",
}


@pytest.fixture(scope="package")
def sqlite_resources(tmp_path_factory):
    """Resources of a caller whose key has every scope."""
    yield from resources_on(f"sqlite:///{tmp_path_factory.mktemp('openapi')}/x.db")


@pytest.fixture(scope="package")
def postgres_resources(new_postgres_database):
    yield from resources_on(new_postgres_database())


def resources_on(store):
    server = Server(store, **HIGH_LIMITS).start()
    yield SampleResources(server)
    server.close()
