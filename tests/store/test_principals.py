"""The principal of a key: by its hash, and by its previous hash during the grace period."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import principal as principals
from holdfast.core.principal import Principal
from tests.store.task_rows import instants
from tests.store.test_task_queries_match_rules import with_examples
from tests.support import ALICE, START, empty, put

HASHES = ["h1", "h2", "h3", "h4", "h5", "h6"]


@st.composite
def principal_lists(draw):
    """Keys with independent times; no two share a hash."""
    return [
        Principal(
            draw(st.sampled_from("ab")),
            f"p{number}",
            key_hash=HASHES[2 * number],
            old_key_hash=draw(st.none() | st.just(HASHES[2 * number + 1])),
            old_until=draw(st.none() | instants),
            expires_at=draw(st.none() | instants),
            revoked_at=draw(st.none() | instants),
        )
        for number in range(draw(st.integers(0, 3)))
    ]


@with_examples
@given(rows=principal_lists(), key=st.sampled_from(HASHES))
def test_a_key_finds_the_principal_that_accepts_it_in_core(store, rows, key):
    empty(store)
    if rows:
        put(store, *rows)
    with store.read() as reader:
        found = reader.principal(key)
    expected = [row.key for row in rows if principals.accepts_key(row, key, START)]
    assert ([] if found is None else [found.key]) == expected


@pytest.mark.parametrize("seconds", [0, 5])
def test_a_rotated_key_works_until_its_expiry_and_the_new_one_afterwards(store, clock, seconds):
    put(store, ALICE)
    put(store, principals.rotate(ALICE, "new", "", START + seconds))

    def who(key):
        with store.read() as reader:
            found = reader.principal(key)
            return None if found is None else found.id

    assert who("new") == ALICE.id
    assert who(ALICE.key_hash) == (ALICE.id if seconds else None)
    clock.now = START + seconds - (1 if seconds else 0)
    assert who(ALICE.key_hash) == (ALICE.id if seconds else None)
    clock.now = START + seconds
    assert who(ALICE.key_hash) is None
    assert who("new") == ALICE.id
