"""One server for all tests."""

import pytest

pytest.register_assert_rewrite("tests.http.job_client", "tests.compat.octostore.expect", "tests.mcp.clients")

from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mcp")
    running = Server(
        f"sqlite:///{folder}/mcp.db",
        ROOT_KEY=ROOT_KEY,
        ALLOWED_ORIGINS="https://agents.example, http://other.example:81",
    )
    yield running.start()
    running.close()
