"""Without a test clock each store uses its own: it advances, in microseconds, and gives rows their times."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from holdfast.core.row import SECOND
from holdfast.store.postgres import PostgresStore
from tests.postgres import is_waited_for
from tests.support import ACCOUNT, STORES, a_lease, empty, load_view, make_store, put, wait_until


@pytest.fixture(params=STORES)
def own_clock_store(request, tmp_path):
    url = (lambda: request.getfixturevalue("database")) if request.param == "postgres" else str
    store = make_store(request.param, tmp_path, url)
    yield store
    store.close()


def now_of(store):
    with store.read() as reader:
        return reader.now


def test_a_store_reads_the_time_of_day_from_its_own_clock(own_clock_store):
    assert abs(now_of(own_clock_store) - time.time_ns() // 1000) < 5 * SECOND


def test_the_time_of_a_store_advances_and_never_goes_back(own_clock_store):
    seen = [now_of(own_clock_store) for _ in range(20)]
    assert seen == sorted(seen)
    wait_until(lambda: now_of(own_clock_store) > seen[0] + 1000)


def test_a_change_is_stamped_with_the_time_of_its_transaction(own_clock_store):
    before = now_of(own_clock_store)
    put(own_clock_store, a_lease())
    row = load_view(own_clock_store, rows=(a_lease().key,)).lease("default", "job")
    assert before <= row.changed_at <= now_of(own_clock_store)


def test_a_batch_without_rows_has_the_time(own_clock_store):
    assert load_view(own_clock_store).now >= now_of(own_clock_store) - SECOND


@pytest.mark.parametrize(
    ("more", "lock"),
    [
        ({"lock_counts": ((ACCOUNT, "id"),)}, f"SELECT pg_advisory_xact_lock(hashtextextended('{ACCOUNT}\x1fid', 0))"),
        ({"usage": (ACCOUNT,)}, f"INSERT INTO usage (account, cycle, created) VALUES ('{ACCOUNT}', 0, 0)"),
    ],
    ids=["counting locks", "usage"],
)
def test_the_time_of_a_batch_is_read_after_its_last_lock_is_granted(database, more, lock):
    """While it waited, a lease that it counts may have ended; its rows were read before."""
    store = PostgresStore(database)
    empty(store)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(database) as other:
        other.execute(lock)
        loading = pool.submit(load_view, store, rows=(a_lease().key,), **more)
        wait_until(lambda: is_waited_for(other))
        ((still_waiting_at,),) = other.execute("SELECT holdfast_now()")
        other.rollback()
        assert loading.result(10).now >= still_waiting_at
    store.close()
