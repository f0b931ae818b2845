"""Claims from queues with a limit for each concurrency key pass over tasks of full keys, on every store."""

from __future__ import annotations

import pytest

from tests.engine.test_queues import limit, taken
from tests.support import run, set_window, transact
from tests.task_commands import complete, create, take

FLOOD = 15


@pytest.mark.parametrize("window", [FLOOD - 5, FLOOD + 5])
@pytest.mark.parametrize("able", ["", "gpu"])
def test_a_full_key_hides_no_other_however_many_of_its_tasks_stand_first(store, monkeypatch, able, window):
    """Also more than are looked through, among those of each set of required words."""
    set_window(monkeypatch, window)
    limit(store, max_running_per_key=1)
    words = able or None
    flood = [create(f"a{n:03}", concurrency_key="a", requires=words) for n in range(FLOOD)]
    last = [create("b1", concurrency_key="b", requires=words), create("z1", requires=words)]
    transact(store, *flood, *last)
    first = run(store, take("work", seed="s0", capabilities=able))
    assert taken(first) == ["a000"]
    assert taken(run(store, take(seed="s1", capabilities=able, limit=9))) == ["b1", "z1"]
    _, again = transact(store, complete("a000", "s0"), take("work", seed="s2", capabilities=able, limit=9))
    assert taken(again) == ["a001"]


def test_a_key_with_room_is_found_behind_a_full_one_also_if_the_batch_frees_it(store):
    limit(store, max_running_per_key=2)
    transact(store, *(create(f"{key}{n}", concurrency_key=key) for key in "ab" for n in range(5)))
    assert taken(run(store, take("work", seed="s0", limit=4))) == ["a0", "a1", "b0", "b1"]
    assert taken(run(store, take("work", seed="s1"))) == "Empty"
    _, freed = transact(store, complete("b0", "s0"), take("work", seed="s2"))
    assert taken(freed) == ["b2"]
    run(store, complete("b1", "s0"))
    assert taken(run(store, take("work", seed="s3"))) == ["b3"]
