"""One server for each store, and a new account for every test."""

import pytest

from tests.compat.octostore.server import Server
from tests.compat.orchestrion.account import Account, register
from tests.http.job_client import ROOT_KEY


@pytest.fixture(params=["sqlite", "postgres"])
def store(request):
    return request.param


@pytest.fixture
def server(request, store):
    """The server of this store, shared by all tests."""
    return request.getfixturevalue(f"{store}_server")


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory):
    yield from running(Server(f"sqlite:///{tmp_path_factory.mktemp('streams')}/x.db", ROOT_KEY=ROOT_KEY))


@pytest.fixture(scope="session")
def postgres_server(new_postgres_database):
    yield from running(Server(new_postgres_database(), ROOT_KEY=ROOT_KEY))


@pytest.fixture(scope="session")
def second_postgres_server(postgres_server):
    """A second process on the database of the first."""
    yield from running(Server(postgres_server.store, ROOT_KEY=ROOT_KEY))


def running(server):
    yield server.start()
    server.close()


@pytest.fixture
def account(server):
    """A new account; its log has two events."""
    return register(server.anyone)


def same_account_on(account, server):
    """The same account on another server."""
    return Account(server.port, account.headers, token=account.token, id=account.id)
