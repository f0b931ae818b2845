"""A disk that fails to flush: the process writes nothing more to that file, whichever way it tries."""

from __future__ import annotations

import threading

import pytest

from holdfast.core.errors import OutcomeUnknown, StoreUnavailable
from holdfast.store.postgres.durability import durability_problem
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.store import durability_pragmas
from tests.store.failing_disk import FailingDisk
from tests.support import a_lease, put


@pytest.fixture
def disk():
    disk = FailingDisk()
    yield disk
    disk.unregister()


@pytest.fixture
def store(disk, tmp_path):
    store = SqliteStore(tmp_path / "holdfast.db")
    store.open()
    put(store, a_lease("before"))
    yield store
    store.close()


def fail_to_flush(store, disk):
    disk.fails_at = "-wal"
    with pytest.raises(OutcomeUnknown):
        put(store, a_lease("lost"))


def test_nothing_is_written_after_a_failed_flush_not_even_when_the_store_is_closed(store, disk):
    fail_to_flush(store, disk)
    for write in (lambda: put(store, a_lease("later")), store.beat, lambda: store.forget_answers(0)):
        with pytest.raises(StoreUnavailable, match="restart the server"):
            write()
    store.close()
    assert disk.writes_since == 0


def test_a_thread_that_waits_during_a_failed_flush_writes_nothing(store, disk):
    failures = []

    def write(name):
        try:
            put(store, a_lease(name))
        except StoreUnavailable as error:
            failures.append(error)

    disk.fails_at = "-wal"
    with pytest.raises(OutcomeUnknown), store.write() as (execute, _):
        execute("UPDATE state SET clean = clean")
        waiting = threading.Thread(target=write, args=("waited",))
        waiting.start()
        waiting.join(0.2)  # it waits for its turn now
    waiting.join(10)
    write("later")
    assert len(failures) == 2
    assert disk.writes_since == 0


def test_a_later_error_does_not_make_the_file_writable_again(store, disk):
    """The second thread passes before the flush fails; its own, harmless error comes after."""
    errors = []

    def abandon():
        try:
            with store.transaction() as transaction:
                transaction.execute("not a statement")
        except StoreUnavailable as error:
            errors.append(error.message)

    disk.fails_at = "-wal"
    with pytest.raises(OutcomeUnknown), store.write() as (execute, _):
        execute("UPDATE state SET clean = clean")
        waiting = threading.Thread(target=abandon)
        waiting.start()
        waiting.join(0.2)
    waiting.join(10)
    with pytest.raises(StoreUnavailable, match="restart the server"):
        put(store, a_lease("later"))
    assert "restart the server" in errors[0]


def test_another_store_on_the_same_file_in_this_process_writes_nothing_either(store, disk):
    fail_to_flush(store, disk)
    store.close()
    again = SqliteStore(store.path)
    with pytest.raises(StoreUnavailable, match="restart the server"):
        again.open()
    assert disk.writes_since == 0


def test_a_checkpoint_that_fails_to_flush_stops_the_writes_that_follow(store, disk):
    store.checkpoint_pages = 1
    disk.fails_at = "holdfast.db"
    put(store, a_lease("committed"))  # durable in the WAL: only the copy into the file failed
    with pytest.raises(StoreUnavailable, match="restart the server"):
        put(store, a_lease("later"))
    assert disk.writes_since == 0


def test_commits_and_checkpoints_reach_the_platters_on_macos():
    assert durability_pragmas("linux") == [("synchronous", "full")]
    assert {("fullfsync", 1), ("checkpoint_fullfsync", 1)} < set(durability_pragmas("darwin"))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"fsync": "on", "full_page_writes": "on", "data_sync_retry": "off"}, None),
        ({"fsync": "on", "data_sync_retry": None}, None),
        ({"fsync": "on", "data_sync_retry": "on"}, "set data_sync_retry = off in postgresql.conf"),
        ({"fsync": "off", "data_sync_retry": "off"}, "PostgreSQL runs with fsync = off,"),
    ],
    ids=["safe", "an older PostgreSQL", "goes on after a failed flush", "never flushes"],
)
def test_a_postgresql_that_writes_on_after_a_failed_flush_is_refused(values, problem):
    """PostgreSQL itself stops at a failed flush, unless it is told to go on."""
    found = durability_problem(values)
    assert found is None if problem is None else problem in found


HOSTED = {"fsync": "off", "full_page_writes": "off", "data_sync_retry": "off"}


def test_an_operator_can_vouch_for_the_storage_of_a_hosted_database_but_not_for_a_failed_flush():
    assert "HOLDFAST_POSTGRES_DURABLE_STORAGE=true" in durability_problem(HOSTED)
    assert durability_problem(HOSTED, durable_storage=True) is None
    refused = durability_problem(HOSTED | {"data_sync_retry": "on"}, durable_storage=True)
    assert refused.startswith("PostgreSQL runs with data_sync_retry = on,")
    assert "HOLDFAST_POSTGRES_DURABLE_STORAGE" not in refused
