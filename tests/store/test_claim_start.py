"""SQLite: a claim begins behind tasks of full keys that an earlier one passed over, and misses none before them."""

from __future__ import annotations

import random

import pytest

from holdfast.engine.verbs.tasks.claiming import Claimed
from holdfast.store.memory import MemoryStore
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite import ready_queries as ready
from holdfast.store.sqlite.claim_start import ClaimStarts
from tests.engine.test_queues import limit, taken
from tests.proof_size import sized
from tests.support import run
from tests.task_commands import complete, create, release_task, take

FLOOD = 20


@pytest.fixture
def files(tmp_path, clock):
    """Two stores on one file, as two processes have it."""
    stores = [SqliteStore(tmp_path / "x.db", clock) for _ in range(2)]
    for store in stores:
        store.open()
    yield stores
    for store in stores:
        store.close()


@pytest.fixture
def flooded(files):
    """A store where key `a` is full, its other tasks stand first, and a claim has passed over them.

    A claim always loads the first task of its queue: here that is one of a full key.
    """
    store = files[0]
    limit(store, max_running_per_key=1)
    for number in range(FLOOD):
        run(store, create(f"a{number:02}", concurrency_key="a", priority=9))
    for number in range(5):
        run(store, create(f"b{number}", concurrency_key=f"b{number}"))
    assert [taken(run(store, take("work", seed=f"s{number}"))) for number in range(2)] == [["a00"], ["b0"]]
    return store


def statements(store, command, monkeypatch):
    """The outcome of a command, and which statements found its task."""
    with store.transaction() as transaction:
        transaction_type = type(transaction)
    seen, add_found = [], transaction_type._add_found
    names = {ready.KEYED_FIRST: "first", ready.KEYED_FROM: "from"}

    def recording(self, rows, row_type, query, arguments):
        seen.append(names.get(query))
        return add_found(self, rows, row_type, query, arguments)

    with monkeypatch.context() as patched:
        patched.setattr(transaction_type, "_add_found", recording)
        outcome = run(store, command)
    return taken(outcome), [each for each in seen if each]


def test_the_next_claim_begins_where_the_last_one_ended(flooded, monkeypatch):
    assert statements(flooded, take("work", seed="s3"), monkeypatch) == (["b1"], ["from"])
    run(flooded, complete("b1", "s3"))
    assert statements(flooded, take("work", seed="s4"), monkeypatch) == (["b2"], ["from"])


def test_a_key_that_has_room_again_is_looked_at_from_the_beginning(flooded, monkeypatch):
    run(flooded, complete("a00", "s0"))
    assert statements(flooded, take("work", seed="s3"), monkeypatch) == (["a01"], ["first"])


def test_a_raised_limit_gives_room(flooded):
    limit(flooded, max_running_per_key=2)
    assert taken(run(flooded, take("work", seed="s3"))) == ["a01"]


def test_a_task_that_comes_before_is_found(flooded):
    run(flooded, create("urgent", concurrency_key="c", priority=5))
    assert taken(run(flooded, take("work", seed="s3"))) == ["urgent"]
    run(flooded, release_task("urgent", "s3"))
    assert taken(run(flooded, take("work", seed="s4"))) == ["urgent"]


def test_a_task_that_another_process_puts_before_is_found(flooded, files):
    run(files[1], create("urgent", concurrency_key="c", priority=5))
    assert taken(run(flooded, take("work", seed="s3"))) == ["urgent"]


def test_a_task_that_another_process_put_before_while_the_file_was_closed_is_found(flooded, files):
    """A new connection may count the commits of others from the number that the one before it had."""
    for number in (1, 2):  # the first time that a file is opened, its schema is made: after that, all are alike
        flooded.close()
        flooded.open()
        assert taken(run(flooded, take("work", seed=f"r{number}"))) == [f"b{number}"]
    flooded.close()
    run(files[1], create("urgent", concurrency_key="c", priority=5))
    flooded.open()
    assert taken(run(flooded, take("work", seed="s3"))) == ["urgent"]


def test_a_row_that_is_changed_outside_of_batches_is_found(flooded):
    with flooded.write() as (execute, _):
        execute("UPDATE tasks SET priority = 5 WHERE id = 'b4'")
    assert taken(run(flooded, take("work", seed="s3"))) == ["b4"]


def test_nothing_is_remembered_of_too_many_queues(monkeypatch):
    monkeypatch.setattr("holdfast.store.sqlite.claim_start.MAX_QUEUES", 1)
    known = ClaimStarts()
    first = create("t1", concurrency_key="a").task
    for name in ("q1", "q2"):
        known.remember(("default", name), first, [])
    assert [known.start(("default", name), []) is None for name in ("q1", "q2")] == [False, True]


@pytest.mark.parametrize("seed", range(sized(3, 60)))
def test_every_claim_gets_the_task_that_it_gets_in_memory(files, clock, seed):
    rng, memory = random.Random(seed), MemoryStore(clock)
    memory.open()
    held: dict[str, str] = {}

    def both(command):
        return [run(store, command) for store in (memory, files[rng.random() < 0.03])]

    for store in (memory, files[0]):
        limit(store, max_running_per_key=1)
    for step in range(250):
        clock.advance(rng.choice([0, 0, 1]))
        what = rng.choices(["create", "claim", "complete", "release task", "limit"], [5, 4, 2, 1, 0.1])[0]
        if what == "create":
            both(create(f"t{step:03}", concurrency_key=rng.choice("aaabbcdef"), priority=rng.choice([0, 0, 1])))
        elif what == "claim":
            first, second = both(take("work", seed=f"s{step}"))
            assert taken(first) == taken(second), f"step {step}"
            if isinstance(first, Claimed):
                held[first.taken[0].task.id] = f"s{step}"
        elif what == "limit":
            most = rng.choice([1, 2])
            for store in (memory, files[0]):
                limit(store, max_running_per_key=most)
        elif held:
            task_id = rng.choice(sorted(held))
            end = complete if what == "complete" else release_task
            both(end(task_id, held.pop(task_id)))
