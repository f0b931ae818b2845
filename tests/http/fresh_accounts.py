"""Fresh accounts for the tests of tasks, sessions and events.

This is a plugin: a file that says `pytest_plugins = ["tests.http.fresh_accounts"]` may ask for its fixtures.
"""

import pytest

from tests.compat.orchestrion.account import register
from tests.http.expiring_session import ExpiringSession


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Run tests of an expired session last: a session lasts at least ten seconds, which pass during the others."""
    items.sort(key=lambda item: "expired_session" in getattr(item, "fixturenames", ()))


@pytest.fixture
def account(server, expiring_sessions):
    """A new account. Requesting it also starts the sessions that later tests need expired."""
    return register(server.anyone)


@pytest.fixture
def stranger(server):
    """Another account."""
    return register(server.anyone)


@pytest.fixture(scope="module")
def expiring_sessions(sqlite_server, postgres_server):
    """Sessions that are not renewed, on both stores at once, so that the wait for their expiry is shared."""
    return {
        "sqlite": ExpiringSession(register(sqlite_server.anyone)),
        "postgres": ExpiringSession(register(postgres_server.anyone)),
    }


@pytest.fixture
def expired_session(expiring_sessions, store):
    """A session that has expired because it was not renewed, and what it held."""
    return expiring_sessions[store].over()
