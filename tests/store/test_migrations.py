"""Migrations: applied once, also when several servers start together; a newer schema is never changed."""

from __future__ import annotations

import subprocess
import sys
import threading

import apsw
import psycopg
import pytest

from holdfast.core.lease import Lease
from holdfast.store.contract import NewerSchema
from holdfast.store.postgres import PostgresStore
from holdfast.store.sql import migrations
from holdfast.store.sqlite import SqliteStore
from tests.support import a_lease, check_log, every, put
from tests.upgrade.newer_holdfast import RAISING, newer_holdfast

OPEN_TOGETHER = """
import sys
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
where = sys.argv[1]
store = PostgresStore(where) if where.startswith("postgresql:") else SqliteStore(where)
print("ready", flush=True)
sys.stdin.readline()
store.open()
with store.read() as reader:
    assert reader.next_token() == 1
store.close()
"""

SCHEMA_VERSION = 20
"""The number of the newest migration; update it with each new one."""
ALL_VERSIONS = list(range(1, SCHEMA_VERSION + 1))


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    """The address of a store that does not exist yet."""
    return (
        str(tmp_path / "new.db")
        if request.param == "sqlite"
        else request.getfixturevalue("new_empty_postgres_database")()
    )


def store_at(address):
    return PostgresStore(address) if address.startswith("postgresql:") else SqliteStore(address)


def schema_of(address):
    """The schema numbers of the database."""
    if address.startswith("postgresql:"):
        with psycopg.connect(address, autocommit=True) as connection:
            return connection.execute("SELECT array_agg(number ORDER BY number) FROM schema_version").fetchone()[0]
    return list(range(1, apsw.Connection(address).pragma("user_version") + 1))


def test_opening_a_store_again_keeps_everything(address):
    store = store_at(address)
    store.open()
    put(store, a_lease())
    store.close()
    again = store_at(address)
    again.open()
    again.open()
    assert len(every(again, Lease)) == 1
    check_log(again)
    again.close()
    assert schema_of(address) == ALL_VERSIONS


def test_four_processes_can_open_a_new_store_at_once(address):
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN_TOGETHER, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for starter in starters:
        assert starter.stdout.readline() == "ready\n"
    for starter in starters:
        starter.stdin.write("go\n")
        starter.stdin.flush()
    for starter in starters:
        starter.communicate()
        assert starter.returncode == 0
    assert schema_of(address) == ALL_VERSIONS


def test_threads_can_open_a_new_store_at_once(address):
    failures = []

    def start():
        try:
            store = store_at(address)
            barrier.wait()
            store.open()
            store.close()
        except Exception as error:
            failures.append(error)

    barrier = threading.Barrier(4)
    starters = [threading.Thread(target=start) for _ in range(4)]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    assert failures == []
    assert schema_of(address) == ALL_VERSIONS


def test_a_newer_schema_is_refused_and_not_changed(address):
    store = store_at(address)
    store.open()
    put(store, a_lease())
    store.close()
    with newer_holdfast(RAISING):
        store_at(address).open()
    numbers = schema_of(address)
    with pytest.raises(NewerSchema):
        store_at(address).open()
    assert schema_of(address) == numbers


@pytest.mark.parametrize("package", ["holdfast.store.sqlite", "holdfast.store.postgres"])
def test_migrations_are_numbered_from_one_without_gaps_in_both_dialects(package):
    numbers = [number for number, _ in migrations.pending(package, 0)]
    assert numbers == ALL_VERSIONS
    assert migrations.pending(package, SCHEMA_VERSION) == []
