"""Stores for the engine: by a driven clock where rules are proved, by their own where threads wait for each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from holdfast.engine.engine import Engine
from holdfast.store.memory.store import MemoryStore
from tests.support import STORES, empty, make_store, stop_in_time


@pytest.fixture
def opened(request, tmp_path):
    """Call it with a kind, and perhaps a clock, for an open store; the second of a kind shares file or database."""
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
    """Each store in turn, by a driven clock."""
    return opened(request.param, clock)


@pytest.fixture
def memory(opened, clock):
    """Where the rules are proved and the store is no matter."""
    return opened("memory", clock)


@pytest.fixture
def started():
    """Call it with a store for a running engine; all are stopped at the end."""
    engines = []

    def started(store, **settings):
        engine = Engine(store, **settings)
        engine.start()
        engines.append(engine)
        return engine

    yield started
    running = [engine for engine in engines if any(lane.thread.is_alive() for lane in engine._lanes)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(stop_in_time, running))


@pytest.fixture(scope="module")
def lasting(request, tmp_path_factory):
    """Call it with a kind for an engine that serves a whole file: PostgreSQL's takes a second to stop."""
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
    """A running engine on each store in turn, by the store's own clock."""
    return lasting(request.param)
