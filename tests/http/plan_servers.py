"""Servers whose accounts have small plans.

This is a plugin: a file that says `pytest_plugins = ["tests.http.plan_servers"]` may ask for its fixtures.
"""

import pytest

from tests.compat.octostore.server import Server

PLANS = """
[counted]
tasks_per_month = 3
max_workers = 2
creates_per_hour = 50
claims_per_hour = 50

[large]
tasks_per_month = 6
max_workers = 4

[rated]
creates_per_hour = 5
claims_per_hour = 3
reads_per_hour = 40
mutations_per_hour = 8
heartbeats_per_hour = 4
"""


@pytest.fixture(scope="module")
def server_with_plan(request, tmp_path_factory):
    """Start a server for a store and a plan; every account on it has that plan."""
    path = tmp_path_factory.mktemp("plans") / "plans.toml"
    path.write_text(PLANS)
    servers = {}

    def server_with_plan(store, plan):
        if (store, plan) not in servers:
            if store == "postgres":
                url = request.getfixturevalue("new_postgres_database")()
            else:
                url = f"sqlite:///{tmp_path_factory.mktemp('planned')}/x.db"
            servers[store, plan] = Server(url, PLANS=str(path), PLAN=plan, TRUSTED_PROXIES="127.0.0.1").start()
        return servers[store, plan]

    yield server_with_plan
    for server in servers.values():
        server.close()


@pytest.fixture
def task_limited_server(server_with_plan, store):
    """A server with the plan `counted`: three tasks a month, two held at once."""
    return server_with_plan(store, "counted")


@pytest.fixture
def rate_limited_server(server_with_plan, store):
    """A server with the plan `rated`: few requests of each class in an hour."""
    return server_with_plan(store, "rated")
