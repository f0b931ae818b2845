"""Rate budgets shared by servers, and the last use of keys, on every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.budget import Terms, lend
from holdfast.core.row import SECOND
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from tests.postgres import is_waited_for
from tests.store.test_task_queries_match_rules import with_examples
from tests.support import START, empty, wait_until

THREADS = 8
TERMS = Terms(1_000, 3600 * SECOND)


def borrowed(store, subject="k1", limit_class="read", terms=TERMS):
    """Borrow until nothing is lent; returns how much was lent."""
    lent = 0
    while granted := store.borrow(subject, limit_class, terms).granted:
        lent += granted
    return lent


@with_examples
@given(steps=st.lists(st.integers(0, 4), max_size=25), limit=st.integers(0, 60))
def test_a_store_lends_by_the_rule_of_core(store, clock, steps, limit):
    empty(store)
    clock.now, terms = START, Terms(limit, 10)
    window = None
    for step in steps:
        clock.now += step
        # The first window begins with the first request.
        started_at, used = window or (clock.now, 0)
        budget = store.borrow("k1", "read", terms)
        assert budget == lend(started_at, used, terms, clock.now)
        window = (budget.started_at, budget.used)


def test_subjects_and_classes_have_separate_budgets(store):
    assert borrowed(store) == TERMS.limit
    assert borrowed(store) == 0
    assert borrowed(store, "k2") == TERMS.limit
    assert borrowed(store, limit_class="claim") == TERMS.limit


def test_a_new_window_has_the_full_budget(store, clock):
    assert borrowed(store) == TERMS.limit
    clock.now += TERMS.window - 1
    assert borrowed(store) == 0
    clock.now += 1
    assert borrowed(store) == TERMS.limit


def test_a_lowered_limit_revokes_nothing_and_lends_nothing_more(store):
    borrowed(store)
    assert store.borrow("k1", "read", Terms(10, TERMS.window)).granted == 0


def race(*stores):
    """Eight threads borrow from the same budget of these stores until nothing is lent."""
    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(lambda place: borrowed(stores[place % len(stores)]), range(THREADS)))


def test_two_servers_on_one_database_lend_exactly_the_limit(database, postgres_store, clock):
    second = PostgresStore(database, clock)
    second.open()
    assert race(postgres_store, second) == TERMS.limit
    clock.now += TERMS.window
    assert race(second, postgres_store) == TERMS.limit
    second.close()


def test_threads_on_one_file_are_lent_exactly_the_limit(tmp_path, clock):
    store = SqliteStore(tmp_path / "x.db", clock)
    store.open()
    assert race(store) == TERMS.limit
    store.close()


# -- last use of keys --------------------------------------------------------------------------------------------


def uses(store, account="a"):
    with store.read() as reader:
        return reader.key_uses(account)


def test_the_last_use_of_a_key_is_stored_per_account(store):
    store.save_key_uses({("a", "k1"): START, ("a", "k2"): START + 1, ("b", "k1"): START + 2})
    assert uses(store) == {"k1": START, "k2": START + 1}
    assert uses(store, "b") == {"k1": START + 2}
    assert uses(store, "c") == {}


def test_a_late_report_does_not_replace_a_newer_last_use(store):
    store.save_key_uses({("a", "k1"): START + 5})
    store.save_key_uses({("a", "k1"): START, ("a", "k2"): START})
    assert uses(store) == {"k1": START + 5, "k2": START}
    store.save_key_uses({("a", "k1"): START + 6})
    assert uses(store)["k1"] == START + 6


def test_the_last_uses_of_keys_are_locked_in_one_order(database, postgres_store):
    """Otherwise two servers that save those of the same keys could wait for each other, and one would lose its own."""
    postgres_store.save_key_uses({("a", "k1"): START, ("a", "k2"): START})
    with ThreadPoolExecutor(1) as pool, psycopg.connect(database) as other:
        other.execute("SELECT FROM key_uses WHERE id = 'k1' FOR UPDATE")
        saving = pool.submit(postgres_store.save_key_uses, {("a", "k2"): START + 1, ("a", "k1"): START + 1})
        wait_until(lambda: is_waited_for(other))
        free = other.execute("SELECT id FROM key_uses WHERE id = 'k2' FOR UPDATE SKIP LOCKED").fetchall()
        other.rollback()
        saving.result(10)
    assert free == [("k2",)]
    assert uses(postgres_store) == {"k1": START + 1, "k2": START + 1}
