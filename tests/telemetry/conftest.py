"""One server per store, used only by the tests of this folder."""

import pytest

from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY
from tests.http.metrics_parser import scrape


@pytest.fixture(scope="package", params=["sqlite", "postgres"])
def server(request, tmp_path_factory, new_postgres_database):
    url = new_postgres_database() if request.param == "postgres" else f"sqlite:///{tmp_path_factory.mktemp('t')}/x.db"
    server = Server(url, ROOT_KEY=ROOT_KEY, ACCESS_LOG="all", PUBLIC_ELECTION_REQUESTS_PER_MINUTE="20").start()
    yield server
    server.close()


class Watch:
    """Differences between two scrapes of the metrics."""

    def __init__(self, server):
        self.server = server
        self.before = self.page()

    def page(self):
        asking = self.server.admin.with_headers(Accept="application/openmetrics-text")
        return scrape(asking.get("/metrics").raw, openmetrics=True)

    def value(self, name, **labels):
        return sum(value for seen, value in self.page().samples(name) if seen == labels)

    def more(self, name, **labels):
        return self.value(name, **labels) - sum(value for seen, value in self.before.samples(name) if seen == labels)


@pytest.fixture
def watch(server):
    return Watch(server)
