"""Sorted keys of the in-memory store: the same as one sorted list, in lists that stay short."""

from __future__ import annotations

import random

import pytest

from holdfast.store.memory import indexes
from holdfast.store.memory.indexes import SortedKeys


@pytest.mark.parametrize("seed", range(5))
def test_keys_are_found_as_in_one_sorted_list(monkeypatch, seed):
    monkeypatch.setattr(indexes, "MAX_ENTRIES", 3)
    chance, keys, expected = random.Random(seed), SortedKeys(), []
    for step in range(1_000):
        grows = chance.random() < (0.8 if step // 100 % 2 == 0 else 0.2)
        if grows or not expected:
            entry = (chance.randrange(20), ("leases", "a", str(step)))
            keys.add(*entry)
            expected.append(entry)
        else:
            entry = expected.pop(chance.randrange(len(expected)))
            keys.remove(*entry)
        expected.sort()
        order = chance.randrange(20)
        assert list(keys) == expected
        assert list(keys.up_to(order)) == [entry for entry in expected if entry[0] <= order]
        assert keys.first(3) == [key for _, key in expected[:3]]
        assert keys.lowest() == (expected[0][0] if expected else None)


def test_no_list_becomes_long():
    keys = SortedKeys()
    for number in range(5 * indexes.MAX_ENTRIES):
        keys.add(number * 7919 % 10_007, ("leases", "a", str(number)))
    assert max(map(len, keys._lists)) <= indexes.MAX_ENTRIES
    assert len(keys._lists) < 12, "they are not split too early either"
