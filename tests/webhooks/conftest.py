"""One receiver for each test file, and a server for each store that may send to it."""

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
    """A path without messages."""
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
    """A server that may send to this machine and retries a few times only."""
    return Server(store, **{"ROOT_KEY": ROOT_KEY, "WEBHOOK_ALLOW_PRIVATE_NETWORKS": "true",
                            "WEBHOOK_RETRIES": RETRIES, "WEBHOOK_TIMEOUT": "2"} | settings)  # fmt: skip


@pytest.fixture
def admin(server):
    return root(server)


@pytest.fixture
def hook(admin):
    """Create a webhook, which is deleted after the test so that it gets no events of the next one."""
    webhook = []

    def hook(url, **more):
        webhook.append(done(admin.post("/v1/webhooks", {"url": url, **more}), 201))
        return webhook[-1]

    yield hook
    for each in webhook:
        admin.delete(f"/v1/webhooks/{each['webhook_id']}")
