"""The application in this process over an in-memory store, for checks that come before the store is used."""

import itertools

import pytest

from tests.compat.octostore.server import PAIRS
from tests.compat.orchestrion.account import register
from tests.http import job_client as agents
from tests.http.in_process_app import InProcessServer

pairs = itertools.cycle(range(1, PAIRS + 1))


@pytest.fixture(scope="module")
def server():
    server = InProcessServer()
    yield server
    server.close()


@pytest.fixture
def alice(server):
    return agents.agent(server, f"alice-{next(pairs)}")


@pytest.fixture
def root(server):
    return agents.root(server)


@pytest.fixture
def account(server):
    """A new account."""
    return register(server.anyone)


@pytest.fixture
def job():
    """The id of a job that was never claimed."""
    return agents.fresh()
