"""Engines without a server: one on each store, in this process, with a clock that the test drives.

This is a plugin: a file that says `pytest_plugins = ["tests.http.embedded_engines"]` may ask for `library`.
"""

import pytest

from holdfast.core.errors import HoldfastError
from holdfast.core.event import Event
from holdfast.core.task import Task
from holdfast.engine.engine import Engine
from tests.support import ACCOUNT, DrivenClock, empty, every, make_store, stop_in_time, wait_until


class Library:
    """An engine with a clock that the test advances."""

    def __init__(self, engine, clock):
        self.engine = engine
        self.clock = clock
        self.call = engine.call

    def attempt(self, command):
        """The outcome of a command, or its refusal as a value."""
        try:
            return self.call(command)
        except HoldfastError as error:
            return error

    def later(self, seconds):
        """Advance the clock and wake the sweep."""
        self.clock.advance(seconds)
        self.engine.sweep.wake()

    def task(self, task_id="t1"):
        return self.engine.read(lambda reader: reader.row(Task, ACCOUNT, task_id))

    def kinds(self, subject):
        return [event.kind for event in every(self.engine.store, Event) if event.subject == subject]

    def becomes(self, state, task_id="t1"):
        wait_until(lambda: self.task(task_id).state == state)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory, new_postgres_database):
    """Engines by store, shared by all tests of a file because an engine on PostgreSQL takes a second to stop."""
    running = {}

    def library(kind):
        if kind not in running:
            clock = DrivenClock()
            engine = Engine(make_store(kind, tmp_path_factory.mktemp("library"), new_postgres_database, clock))
            engine.start()
            running[kind] = Library(engine, clock)
        empty(running[kind].engine.store)
        return running[kind]

    yield library
    for each in running.values():
        stop_in_time(each.engine)
        each.engine.store.close()


@pytest.fixture
def library(libraries, store):
    return libraries(store)
