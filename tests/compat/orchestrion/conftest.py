"""One server for each store, and a new account for every test."""

import pytest

from tests.compat.octostore.server import Server
from tests.compat.orchestrion.account import register
from tests.compat.orchestrion.lapses import Lapses
from tests.fronted_server import shared_server

STORES = ("sqlite", "postgres")


@pytest.fixture(params=STORES)
def store(request):
    return request.param


@pytest.fixture
def server(request, store):
    """The server of this store, shared by all tests."""
    return request.getfixturevalue(f"{store}_task_server")


@pytest.fixture
def lapses(request, store):
    """Tasks whose holders stopped renewing, and the observations; leases on both stores expire at the same time."""
    begun = {each: request.getfixturevalue(f"{each}_lapses") for each in STORES}
    return begun[store].results()


@pytest.fixture
def anyone(server):
    """A caller without credentials."""
    return server.anyone


@pytest.fixture
def account(anyone):
    """A new account."""
    return register(anyone)


@pytest.fixture
def other_account(anyone):
    """Another account."""
    return register(anyone)


@pytest.fixture(scope="package")
def sqlite_task_server(tmp_path_factory):
    yield from running(shared_server(f"sqlite:///{tmp_path_factory.mktemp('orchestrion')}/x.db"))


@pytest.fixture(scope="package")
def postgres_task_server(new_postgres_database):
    yield from running(Server(new_postgres_database()))


@pytest.fixture(scope="package")
def sqlite_lapses(sqlite_task_server):
    yield from running(Lapses(sqlite_task_server.anyone))


@pytest.fixture(scope="package")
def postgres_lapses(postgres_task_server):
    yield from running(Lapses(postgres_task_server.anyone))


def running(thing):
    yield thing.start()
    thing.close()
