"""One receiver for a file, and a server of each store that may send to it."""

from __future__ import annotations

import itertools

import pytest

from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY, root
from tests.http.replies import done
from tests.webhooks.receiver import Receiver

RETRIES = "0.2,0.3"
numbers = itertools.count()


@pytest.fixture(scope="module")
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def path():
    """A path that nobody posts to yet."""
    return f"/{next(numbers)}"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request):
    return request.param


@pytest.fixture
def server(request, store):
    return request.getfixturevalue(f"{store}_server")


@pytest.fixture(scope="session")
def memory_server():
    yield from running("memory:")


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory):
    yield from running(f"sqlite:///{tmp_path_factory.mktemp('webhooks')}/x.db")


@pytest.fixture(scope="session")
def postgres_server(new_postgres_database):
    yield from running(new_postgres_database())


def running(store, **settings):
    server = sending(store, **settings).start()
    yield server
    server.close()


def sending(store, **settings):
    """A server that sends to this machine and gives up quickly."""
    return Server(store, **{"ROOT_KEY": ROOT_KEY, "WEBHOOK_ALLOW_PRIVATE_NETWORKS": "true",
                            "WEBHOOK_RETRIES": RETRIES, "WEBHOOK_TIMEOUT": "2"} | settings)  # fmt: skip


@pytest.fixture
def boss(server):
    return root(server)


@pytest.fixture
def hook(boss):
    """Make a webhook; it is gone after the test, so that the next one is not told to it."""
    made = []

    def hook(url, **more):
        made.append(done(boss.post("/v1/webhooks", {"url": url, **more}), 201))
        return made[-1]

    yield hook
    for each in made:
        boss.delete(f"/v1/webhooks/{each['webhook_id']}")
