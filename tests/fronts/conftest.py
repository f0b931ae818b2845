"""Servers with fronts, and a caller whose connections the fronts accept."""

import pytest

from tests.fronted_server import FrontedServer
from tests.http.job_client import ROOT_KEY, agent


@pytest.fixture(scope="module")
def fronted(tmp_path_factory):
    yield from running(f"sqlite:///{tmp_path_factory.mktemp('fronts')}/x.db", workers=2)


@pytest.fixture
def unshared(tmp_path):
    """A server that a test may kill parts of."""
    yield from running(f"sqlite:///{tmp_path}/x.db", workers=3)


def running(store, workers):
    server = FrontedServer(store, workers=workers, ROOT_KEY=ROOT_KEY)
    yield server.start()
    server.close()


@pytest.fixture
def alice(fronted):
    return agent(fronted)
