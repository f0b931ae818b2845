"""One server per store in a worker, and fresh jobs for every test."""

import itertools

import pytest

from tests.compat.octostore.server import PAIRS, Server
from tests.fronted_server import shared_server
from tests.http import job_client as agents

pairs = itertools.cycle(range(1, PAIRS + 1))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request):
    return request.param


@pytest.fixture
def server(request, store):
    """The server of this store, shared by all tests."""
    return request.getfixturevalue(f"{store}_server")


@pytest.fixture(scope="package")
def sqlite_server(tmp_path_factory):
    yield from running(shared_server(f"sqlite:///{tmp_path_factory.mktemp('jobs')}/x.db", ROOT_KEY=agents.ROOT_KEY))


@pytest.fixture(scope="package")
def postgres_server(new_postgres_database):
    yield from running(Server(new_postgres_database(), ROOT_KEY=agents.ROOT_KEY))


@pytest.fixture(scope="package")
def second_postgres_server(postgres_server):
    """Another process on the database of the first."""
    yield from running(Server(postgres_server.store, ROOT_KEY=agents.ROOT_KEY))


def running(server):
    yield server.start()
    server.close()


@pytest.fixture
def alice(server):
    return agents.agent(server, f"alice-{next(pairs)}")


@pytest.fixture
def bob(server):
    """Another principal than alice."""
    return agents.agent(server, f"bob-{next(pairs)}")


@pytest.fixture
def root(server):
    return agents.root(server)


@pytest.fixture
def job():
    """The id of a job that was never claimed."""
    return agents.fresh()
