"""A migration killed at any statement leaves the old store or the new one, with every row, and can be run again."""

from __future__ import annotations

import shutil
from contextlib import closing

import apsw
import psycopg
import pytest

from holdfast.app import make_store
from holdfast.settings import Settings, sqlite_path
from holdfast.store.sql import migrations
from tests.proof_size import FULL
from tests.support import check_log
from tests.upgrade.database_content import content, has_rows
from tests.upgrade.killed_migration import AFTER_THE_LAST, INSIDE_COMMIT, open_and_kill, split
from tests.upgrade.newer_holdfast import RAISING, newer_holdfast
from tests.upgrade.old_stores import OLD_SCHEMA, load_into_postgres, sqlite_file

NEWEST = migrations.newest_schema("holdfast.store.sqlite")
SAMPLE_ROWS = """
INSERT INTO sessions (account, id, version, changed_at, principal, ttl, opened_at, expires_at)
    VALUES ('a', 's', 1, 5, 'p', 9, 5, 14);
INSERT INTO events (account, subject, version, kind, at, actor, request_id, data, seq)
    VALUES ('a', 'session:s', 1, 'session.opened', 5, 'p', 'r', '{}', 1);
INSERT INTO event_counters (account, seq) VALUES ('a', 1);
"""


class Stores:
    """Stores of one kind: makes one with an old schema, and copies it for each kill."""

    def __init__(self, kind, folder, postgres):
        self.kind, self._folder, self._postgres = kind, folder, postgres
        self._numbers = iter(range(10_000))

    def new(self):
        """The address of a database that is empty."""
        if self.kind == "postgres":
            return self._postgres.new_empty_database()
        return f"sqlite:///{self._folder}/{next(self._numbers)}.db"

    def with_schema(self, number):
        """The address of a store with an old schema: the kept one if it has it, else an almost empty one."""
        address = self.new()
        if number == OLD_SCHEMA:
            load_into_postgres(address) if self.kind == "postgres" else sqlite_file(sqlite_path(address))
        elif number:
            self._build(address, number)
        return address

    def _build(self, address, number):
        scripts = [script for each, script in migrations.pending(f"holdfast.store.{self.kind}", 0) if each <= number]
        if self.kind == "sqlite":
            with closing(apsw.Connection(str(sqlite_path(address)))) as file:
                file.execute("".join((*scripts, SAMPLE_ROWS)))
                file.pragma("user_version", number)
            return
        numbers = "".join(f"INSERT INTO schema_version VALUES ({each});" for each in range(1, number + 1))
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE schema_version (number integer PRIMARY KEY)")
            known = f"SET holdfast.schema = {number};"  # the newest schemas refuse the writes of servers without this
            connection.execute("".join((known, *scripts, SAMPLE_ROWS, numbers)))

    def copy(self, address):
        """The address of a copy."""
        if self.kind == "postgres":
            return self._postgres.copy_database(address)
        copied = self.new()
        if sqlite_path(address).exists():
            shutil.copyfile(sqlite_path(address), sqlite_path(copied))
        return copied


@pytest.fixture(params=["sqlite", "postgres"])
def stores(request, tmp_path, postgres):
    return Stores(request.param, tmp_path, postgres)


def kill_points(statements):
    """Before every statement, inside COMMIT and after it; in `make test` some of them."""
    first_change = next(
        n for n, text in enumerate(statements, 1) if text.lstrip().startswith(("CREATE", "ALTER", "--"))
    )
    ends = [len(statements), INSIDE_COMMIT, AFTER_THE_LAST]
    return [*range(1, len(statements)), *ends] if FULL else [(first_change + len(statements)) // 2, *ends]


def check_killed(stores, old, kill_at, newest=NEWEST):
    """Kill the migration of a copy at one point; whether it was completed."""
    address = stores.copy(old)
    before = content(address) if stores.kind == "postgres" or sqlite_path(address).exists() else None
    open_and_kill(address, kill_at)
    after = content(address)
    if before is None:
        assert after.number in {0, newest}
    else:
        assert after == before or after.number == newest, "neither the old store nor the new one"
        assert has_rows(after, before)
    store = make_store(Settings(store=address))
    store.open()
    if before is None or before.number in {0, OLD_SCHEMA}:
        check_log(store)
    store.close()
    reopened = content(address)
    assert reopened.number == newest
    if before is not None:
        assert has_rows(reopened, before)
    return after.number == newest


@pytest.mark.parametrize("schema", range(NEWEST) if FULL else [0, OLD_SCHEMA])
def test_a_killed_migration_leaves_the_old_store_or_the_new_one(stores, schema):
    old = stores.with_schema(schema)
    statements = open_and_kill(stores.copy(old))
    assert statements.count("COMMIT") == 1
    points = kill_points(statements)
    if stores.kind == "sqlite":  # what is written before and during COMMIT is tested by store/test_power_loss.py
        points.remove(INSIDE_COMMIT)
    completed = {point: check_killed(stores, old, point) for point in points}
    assert completed.pop(AFTER_THE_LAST)
    completed.pop(INSIDE_COMMIT, None)
    commit = statements.index("COMMIT") + 1
    assert completed == {point: point > commit for point in completed}


def test_a_killed_migration_that_raises_the_minimum_leaves_the_old_store_or_the_new_one(stores):
    with newer_holdfast(RAISING):
        old = stores.with_schema(OLD_SCHEMA)
        statements = open_and_kill(stores.copy(old))
        points = range(1, len(statements)) if FULL else [len(statements) - 3]
        for point in points:
            check_killed(stores, old, point, newest=NEWEST + 1)


def test_a_migration_that_commits_halfway_is_found(stores):
    begin = "BEGIN IMMEDIATE" if stores.kind == "sqlite" else "BEGIN"
    halfway = f"ALTER TABLE sessions ADD COLUMN one TEXT; COMMIT; {begin}; ALTER TABLE sessions ADD COLUMN two TEXT;"
    with newer_holdfast(halfway):
        old = stores.with_schema(OLD_SCHEMA)
        statements = open_and_kill(stores.copy(old))
        last_change = next(n for n, text in enumerate(statements, 1) if "COLUMN two" in text)
        with pytest.raises(AssertionError, match="neither the old store nor the new one"):
            check_killed(stores, old, last_change, newest=NEWEST + 1)


def test_a_script_is_split_into_its_statements():
    script = "-- a; b\nCREATE x AS $$ a; b $$;\nINSERT 'it''s; c'; -- last\n"
    assert split(script) == ["CREATE x AS $$ a; b $$", "INSERT 'it''s; c'"]
    for _, script in migrations.pending("holdfast.store.postgres", 0):
        assert split(script)
