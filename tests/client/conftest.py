"""One server per store in a worker, every kind of client for it, and unused names for every test."""

import uuid

import pytest

import holdfast
from holdfast.client.leases import clock
from tests.client.recorder import RecordingTransport
from tests.client.ways import KEY, awaited, url_of
from tests.compat.octostore.server import Server


@pytest.fixture(scope="package")
def sqlite_server(tmp_path_factory):
    yield from running(Server(f"sqlite:///{tmp_path_factory.mktemp('client')}/x.db", ROOT_KEY=KEY))


@pytest.fixture(scope="package")
def postgres_server(new_postgres_database):
    yield from running(Server(new_postgres_database(), ROOT_KEY=KEY))


def running(server):
    yield server.start()
    server.close()


@pytest.fixture(scope="package")
def embedded_client(tmp_path_factory):
    with holdfast.open(tmp_path_factory.mktemp("embedded") / "x.db") as client:
        yield client


@pytest.fixture
def transport():
    """A store in memory that records the requests of its client."""
    return RecordingTransport()


@pytest.fixture
def recorded(transport):
    """The client of that store."""
    with holdfast.Client(transport=transport) as client:
        yield client


@pytest.fixture
def slow_requests(transport, monkeypatch):
    """Requests whose path ends so take so many seconds by the client's clock, which stands still otherwise."""
    times, begin = [100.0], transport.begin
    monkeypatch.setattr(clock, "boot_seconds", lambda: times[-1])

    def delay(ending, seconds):
        def late(request):
            if request.target.endswith(ending):
                times.append(times[-1] + seconds)
            return begin(request)

        monkeypatch.setattr(transport, "begin", late)
        return times

    return delay


@pytest.fixture(params=["http", "async", "embedded", "postgres"])
def client(request):
    """Every kind of client, so that all of them pass the same tests."""
    if request.param == "embedded":
        yield request.getfixturevalue("embedded_client")
        return
    server = request.getfixturevalue("postgres_server" if request.param == "postgres" else "sqlite_server")
    if request.param == "async":
        with awaited(url_of(server)) as client:
            yield client
    else:
        with holdfast.Client(url_of(server), KEY) as client:
            yield client


@pytest.fixture
def name():
    """An unused name."""
    return f"name-{uuid.uuid4().hex}"


@pytest.fixture
def new_server():
    """Create servers that a test may kill; they are stopped after the test."""
    built = []

    def build(url, **settings):
        built.append(Server(url, **{"ROOT_KEY": KEY, **settings}))
        return built[-1]

    yield build
    for server in built:
        server.kill()
        server.close_files()
