"""Fixtures that run each test of the store interface on every store."""

from __future__ import annotations

import pytest

from tests.support import STORES, make_store


@pytest.fixture
def postgres_store(postgres_stores, clock):
    """PostgreSQL with a test clock, empty."""
    with postgres_stores.store(clock) as store:
        yield store


@pytest.fixture
def sqlite_store(tmp_path, clock):
    """SQLite with a test clock."""
    store = make_store("sqlite", tmp_path, str, clock)
    yield store
    store.close()


@pytest.fixture(params=STORES)
def store(request, clock):
    """Each store."""
    if request.param == "memory":
        return make_store("memory", None, str, clock)
    return request.getfixturevalue(f"{request.param}_store")


@pytest.fixture(params=STORES[1:])
def sql_store(request):
    """Each store that is durable."""
    return request.getfixturevalue(f"{request.param}_store")
