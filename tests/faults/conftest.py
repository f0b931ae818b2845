"""Servers that are killed or shut down: each test creates its own."""

import pytest

from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY, fresh


@pytest.fixture(params=["sqlite", "postgres"])
def store(request):
    return request.param


@pytest.fixture
def new_store_url(request, store, tmp_path):
    """Returns the address of a new, empty store."""
    if store == "postgres":
        return request.getfixturevalue("new_postgres_database")
    return lambda: f"sqlite:///{tmp_path}/{fresh('x')}.db"


@pytest.fixture
def new_server():
    """Creates a server on a store; it is stopped after the test."""
    built = []

    def build(url, kind=Server, **settings):
        built.append(kind(url, **{"ROOT_KEY": ROOT_KEY, **settings}))
        return built[-1]

    yield build
    for server in built:
        if hasattr(server, "process") and server.process.poll() is None:
            server.close()
        else:
            server.close_files()


@pytest.fixture
def job():
    return fresh()
