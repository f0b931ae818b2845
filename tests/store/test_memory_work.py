"""The in-memory store: the work of a batch does not grow with what is stored. Work is counted in executed opcodes."""

from __future__ import annotations

import sys

import pytest

from holdfast.store.memory.store import MemoryStore
from tests.support import ACCOUNT, START, DrivenClock, acquire, claim, heartbeat, open_session, release, transact
from tests.task_commands import begin, complete, create, heartbeat_session, take, take_this

FEW, MANY = 40, 1_200


def filled(count):
    """A store with this many jobs held by other callers, ready tasks and events."""
    store = MemoryStore(DrivenClock())
    for first in range(0, count, 200):
        numbers = range(first, min(first + 200, count))
        transact(store, *(claim(f"job-{number}", f"l{number}") for number in numbers))
        transact(store, *(create(f"task-{number:05}") for number in numbers))
    return store


@pytest.fixture(scope="module")
def stores():
    return [filled(FEW), filled(MANY)]


def count_opcodes(work):
    """How many bytecode instructions Python executes."""
    total = 0

    def trace(frame, event, _):
        nonlocal total
        frame.f_trace_opcodes = True
        total += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return total


def read_deadlines(store):
    with store.read() as reader:
        reader.due(1_000)
        reader.next_deadline()
        reader.principal("no such hash")
        reader.events(ACCOUNT, reader.log_bounds(ACCOUNT)[1] - 1, 10)


def read_counts(store):
    with store.read() as reader:
        reader.counts(ACCOUNT)
        reader.usage(ACCOUNT)
        reader.task_counts(ACCOUNT)


@pytest.mark.parametrize(
    "work",
    [
        lambda store: transact(store, claim("new", "l-new")),
        lambda store: transact(store, heartbeat("new", "l-new")),
        lambda store: transact(store, claim("new", "l-other")),
        lambda store: transact(store, release("new", "l-new")),
        lambda store: transact(store, acquire("lock")),
        lambda store: transact(store, open_session("s0")),
        lambda store: transact(store, begin()),
        lambda store: transact(store, heartbeat_session()),
        lambda store: transact(store, take("work")),
        lambda store: transact(store, create("task-new", unique_key="k", scheduled_at=START + 9)),
        lambda store: transact(store, take_this("task-00009")),
        lambda store: transact(store, complete("task-00009")),
        read_deadlines,
        read_counts,
    ],
    ids=[
        "claim a new name", "renew", "claim a held name", "release", "acquire a lock", "open a session",
        "begin a session", "renew a session",
        "claim the next task", "create a task", "claim a task by id", "complete a task", "read the deadlines",
        "read counts",
    ],
)  # fmt: skip
def test_a_batch_does_as_much_work_in_a_full_store_as_in_a_nearly_empty_one(stores, work):
    few, many = (count_opcodes(lambda store=store: work(store)) for store in stores)
    assert few > 100
    assert many < 1.5 * few
