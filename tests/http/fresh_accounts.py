"""Fresh accounts for the tests of tasks, sessions and events.

This is a plugin: a file that says `pytest_plugins = ["tests.http.fresh_accounts"]` may ask for its fixtures.
"""

import pytest

from tests.compat.orchestrion.account import register
from tests.http.expiring_session import Fading


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """A session lives at least ten seconds: tests that see one over come last, when it is over meanwhile."""
    items.sort(key=lambda item: "faded" in getattr(item, "fixturenames", ()))


@pytest.fixture
def account(server, fadings):
    """An account nobody used before; sessions that nobody renews run down beside it."""
    return register(server.anyone)


@pytest.fixture
def stranger(server):
    """Another account."""
    return register(server.anyone)


@pytest.fixture(scope="module")
def fadings(sqlite_server, postgres_server):
    """Sessions that nobody renews, on both stores at once, so that their seconds are spent once."""
    return {"sqlite": Fading(register(sqlite_server.anyone)), "postgres": Fading(register(postgres_server.anyone))}


@pytest.fixture
def faded(fadings, store):
    """What was held by a session that was not heard of; it is over by now."""
    return fadings[store].over()
