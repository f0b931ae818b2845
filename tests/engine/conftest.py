"""Stores and running engines: with a driven clock to test rules, with their own clock to test threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from holdfast.engine.engine import Engine
from holdfast.store.memory.store import MemoryStore
from tests.support import STORES, empty, make_store, stop_in_time, transact
from tests.task_commands import create, take


@pytest.fixture
def opened(request, tmp_path):
    """Factory of open stores by kind and clock; a second store of a kind shares the file or database."""
    with ExitStack() as stack:
        made = []

        def opened(kind, clock=None):
            if kind == "memory":
                return MemoryStore(clock)
            if kind == "postgres" and kind not in made:
                made.append(kind)
                return stack.enter_context(request.getfixturevalue("postgres_stores").store(clock))
            store = make_store(kind, tmp_path, lambda: request.getfixturevalue("database"), clock)
            stack.callback(store.close)
            return store

        yield opened


@pytest.fixture(params=STORES)
def store(request, opened, clock):
    """Each store, with a driven clock."""
    return opened(request.param, clock)


@pytest.fixture
def claimed_store(store):
    """A store with a task of two attempts, which the worker `first` holds with the seed s1."""
    transact(store, create("t1", max_attempts=2), take("work", worker="first"))
    return store


@pytest.fixture
def memory(opened, clock):
    """The memory store with a driven clock, for rules that do not depend on the store."""
    return opened("memory", clock)


@pytest.fixture
def started():
    """Factory of running engines; all are stopped at the end."""
    engines = []

    def started(store, **settings):
        engine = Engine(store, **settings)
        engine.start()
        engines.append(engine)
        return engine

    yield started
    running = [engine for engine in engines if any(lane.thread.is_alive() for lane in engine.lanes.all)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(stop_in_time, running))


@pytest.fixture(scope="module")
def lasting(request, tmp_path_factory):
    """Factory of running engines shared by a test file, because stopping one on PostgreSQL takes a second."""
    engines = {}

    def lasting(kind):
        if kind not in engines:
            url = (lambda: request.getfixturevalue("database")) if kind == "postgres" else str
            engines[kind] = Engine(make_store(kind, tmp_path_factory.mktemp("lasting"), url))
            engines[kind].start()
        empty(engines[kind].store)
        return engines[kind]

    yield lasting
    for engine in engines.values():
        stop_in_time(engine)
        engine.store.close()


@pytest.fixture(params=STORES)
def engine(request, lasting):
    """A running engine on each store, with the store's own clock."""
    return lasting(request.param)
