"""One server for each store, and new lock names, election ids and callers for every test."""

import itertools
import uuid

import pytest

from tests.compat.octostore.lifetimes import Lifetimes
from tests.compat.octostore.server import ALLOWED_ORIGIN, PAIRS, Server
from tests.fronted_server import shared_server

STORES = ("sqlite", "postgres")
PLENTY = {"PUBLIC_ELECTION_REQUESTS_PER_MINUTE": "100000", "ALLOWED_ORIGINS": ALLOWED_ORIGIN}
STRICT = {
    "PUBLIC_ELECTION_REQUESTS_PER_MINUTE": "5",
    "MAX_PUBLIC_ELECTIONS": "2",
    "PUBLIC_ELECTION_WATCH_STREAMS_PER_CLIENT": "2",
    "PUBLIC_ELECTION_WATCH_STREAMS_GLOBAL": "3",
    "PUBLIC_ELECTION_WATCH_MAX_SECONDS": "2",
    "TRUSTED_PROXIES": "127.0.0.1",
}

pairs = itertools.cycle(range(1, PAIRS + 1))


@pytest.fixture(params=STORES)
def store(request):
    return request.param


@pytest.fixture
def server(request, store):
    """The server of this store, shared by all tests."""
    return request.getfixturevalue(f"{store}_server")


@pytest.fixture
def lifetimes(request, store):
    """Sessions and an election that have expired; those of both stores expire at the same time."""
    begun = {each: request.getfixturevalue(f"{each}_lifetimes") for each in STORES}
    return begun[store].results()


@pytest.fixture
def strict_server(request, store):
    """A server with low limits: five election requests a minute, two elections, three watches of two seconds."""
    return request.getfixturevalue(f"strict_{store}_server")


@pytest.fixture
def new_server(request, store):
    """Create a server on a new store; it is stopped after the test."""
    new_store_url = request.getfixturevalue(f"new_{store}_url")
    built = []

    def build(**settings):
        built.append(Server(new_store_url(), **settings))
        return built[-1]

    yield build
    for server in built:
        server.close()


@pytest.fixture(scope="package")
def new_sqlite_url(tmp_path_factory):
    return lambda: f"sqlite:///{tmp_path_factory.mktemp('wire')}/x.db"


@pytest.fixture(scope="package")
def new_postgres_url(new_postgres_database):
    return new_postgres_database


@pytest.fixture(scope="package")
def sqlite_server(new_sqlite_url):
    yield from running(shared_server(new_sqlite_url(), **PLENTY))


@pytest.fixture(scope="package")
def postgres_server(new_postgres_url):
    yield from running(Server(new_postgres_url(), **PLENTY))


@pytest.fixture(scope="package")
def strict_sqlite_server(new_sqlite_url):
    yield from running(Server(new_sqlite_url(), **STRICT))


@pytest.fixture(scope="package")
def strict_postgres_server(new_postgres_url):
    yield from running(Server(new_postgres_url(), **STRICT))


@pytest.fixture(scope="package")
def sqlite_lifetimes(sqlite_server):
    yield from running(Lifetimes(sqlite_server))


@pytest.fixture(scope="package")
def postgres_lifetimes(postgres_server):
    yield from running(Lifetimes(postgres_server))


def running(thing):
    yield thing.start()
    thing.close()


@pytest.fixture
def pair():
    return next(pairs)


@pytest.fixture
def alice(server, pair):
    return server.user(f"alice-{pair}")


@pytest.fixture
def bob(server, pair):
    """A user other than alice."""
    return server.user(f"bob-{pair}")


@pytest.fixture
def admin(server):
    return server.admin


@pytest.fixture
def anyone(server):
    """A caller without credentials."""
    return server.anyone


@pytest.fixture
def lock():
    """An unused lock name."""
    return f"lock-{uuid.uuid4().hex}"


@pytest.fixture
def election():
    """An unused election id."""
    return f"election-{uuid.uuid4().hex}"


@pytest.fixture
def session(alice):
    """A live session of alice."""
    return alice.open_session().json["session_id"]
