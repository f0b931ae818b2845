"""One server for the whole run, and fresh names for every test."""

import asyncio
import uuid

import pytest

import holdfast
from tests.wire.server import Server

KEY = "a-root-key-for-the-client-tests-0123456789"


class Awaited:
    """An AsyncClient as a plain test sees it: every call is run to its end on one event loop."""

    def __init__(self, client: holdfast.AsyncClient, runner: asyncio.Runner) -> None:
        self._client, self._runner = client, runner

    def __getattr__(self, name):
        method = getattr(self._client, name)

        async def run(arguments, named):
            return await method(*arguments, **named)

        return lambda *arguments, **named: self._runner.run(run(arguments, named))


def url_of(server):
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory):
    yield from running(Server(f"sqlite:///{tmp_path_factory.mktemp('client')}/x.db", ROOT_KEY=KEY))


@pytest.fixture(scope="session")
def postgres_server(new_postgres_database):
    yield from running(Server(new_postgres_database(), ROOT_KEY=KEY))


def running(server):
    yield server.start()
    server.close()


@pytest.fixture(params=["http", "async"])
def client(request, sqlite_server):
    """The same tests over every way to call."""
    yield from WAYS[request.param](sqlite_server, request)


def _http(server, request):
    with holdfast.Client(url_of(server), KEY) as client:
        yield client


def _async(server, request):
    with asyncio.Runner() as runner:
        client = Awaited(holdfast.AsyncClient(url_of(server), KEY), runner)
        yield client
        client.close()


WAYS = {"http": _http, "async": _async}


@pytest.fixture
def name():
    """A name nobody used before."""
    return f"name-{uuid.uuid4().hex}"
