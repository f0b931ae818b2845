"""Batches on PostgreSQL: what they send, what they lock, and how few round trips they take."""

from __future__ import annotations

import psycopg
import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.core.lease import Lease
from holdfast.engine.view import View
from holdfast.store.contract import Rerun
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.postgres import PostgresStore, connection, pipeline
from holdfast.store.postgres.load_statements import ROWS_PER_ACCOUNT
from tests.support import ACCOUNT, a_lease, check_log, claim, every, heartbeat, put, release, transact
from tests.task_commands import a_task, beat, complete, create, take

AWKWARD = [
    "plain",
    'a"b',
    "a\\b",
    "\\",
    '\\"',
    "{a,b}",
    "NULL",
    "null",
    " a ",
    "a\nb\tc",
    "\x01\x1f\x7f",
    "é\u2028😀",
    "'$1'",
]


def needs_of(rows):
    return AllNeeds.of([Needs(rows=tuple(row.key for row in rows))])


@pytest.mark.parametrize(("accounts", "rows"), [(1, 1), (1, 40), (2, 2), (2, 2 * ROWS_PER_ACCOUNT), (30, 40)], ids=str)
def test_rows_are_locked_however_many_accounts_a_batch_has(postgres_store, database, accounts, rows):
    stored = [a_lease(f"job-{number:02}", account=f"account-{number % accounts}") for number in range(rows)]
    put(postgres_store, *stored)
    with postgres_store.transaction() as transaction:
        assert {*transaction.load(needs_of(stored)).rows} == {row.key for row in stored}
        with psycopg.connect(database) as other:
            assert other.execute("SELECT id FROM leases FOR UPDATE SKIP LOCKED").fetchall() == []
    check_log(postgres_store)


@pytest.mark.parametrize("accounts", [1, 2])
def test_any_text_is_found_again_and_logged(postgres_store, accounts):
    stored = [a_lease(name, account=f"{name}{n}", owner=name) for name in AWKWARD for n in range(accounts)]
    put(postgres_store, *stored)
    for group in (stored[:1], stored):
        found = put(postgres_store, *group)
        assert {found.find(Lease, row.account, row.id).owner for row in group} == {row.owner for row in group}
    for row in stored:
        with postgres_store.transaction() as transaction:
            loaded = transaction.load(needs_of([row])).rows[row.key]
            assert (loaded.account, loaded.id, loaded.owner) == (row.account, row.id, row.owner)
    check_log(postgres_store)


def test_a_batch_whose_row_is_gone_despite_its_lock_runs_again(postgres_store):
    with pytest.raises(Rerun), postgres_store.transaction() as transaction:
        view = View(transaction.load(needs_of([a_lease()])))
        view.put(a_lease(), "changed")
        changes = view.changes([])
        changes.updates, changes.inserts = changes.inserts, {}
        changes.loaded[a_lease().key] = a_lease(version=1)
        transaction.save(changes)
    assert every(postgres_store, Lease) == []


def test_round_trips_of_a_batch(postgres_store, monkeypatch):
    """Load, save with COMMIT, and one more for tokens; the first batch with new names takes another."""
    trips = []
    run = pipeline.Pipeline.run

    def counted(self, *statements, **options):
        trips.append(len(statements))
        return run(self, *statements, **options)

    def trips_of(*commands):
        transact(postgres_store, *commands)
        count = len(trips)
        trips.clear()
        return count

    put(postgres_store, a_lease("stored"))
    put(postgres_store, a_lease("stored"))
    monkeypatch.setattr(pipeline.Pipeline, "run", counted)
    names = [f"job-{number}" for number in range(30)]
    assert trips_of(*(claim(name) for name in names[:10])) == 4
    assert trips_of(*(claim(name) for name in names[10:])) == 3
    assert trips_of(*(heartbeat(name) for name in names)) == 2
    assert trips_of(*(release(name) for name in names)) == 2
    assert trips_of(*(claim(name) for name in names)) == 3
    assert trips_of(claim("another")) == 4  # most names of the last batch were stored
    assert trips_of(*(create(f"t{number}") for number in range(10))) == 2
    assert trips_of(*(take() for _ in range(10))) == 3
    assert trips_of(*(beat(f"t{number}") for number in range(10))) == 2
    assert trips_of(*(complete(f"t{number}") for number in range(10))) == 2
    check_log(postgres_store)


@pytest.mark.parametrize("expects_new", [False, True])
def test_a_name_that_was_forgotten_goes_on_with_its_versions(postgres_store, expects_new):
    put(postgres_store, a_lease("old"))
    put(postgres_store, a_lease("old"))
    with postgres_store.transaction() as transaction:
        view = View(transaction.load(needs_of([a_lease("old")])))
        view.remove(view.lease(ACCOUNT, "old"), "forgotten")
        transaction.save(view.changes([]))
    transaction._pipeline.expects_new = expects_new
    put(postgres_store, a_lease("old"), a_lease("new"))
    assert {row.id: row.version for row in every(postgres_store, Lease)} == {"old": 4, "new": 1}
    check_log(postgres_store)


@pytest.fixture
def unanalyzed(database):
    """A connection to a database whose tables of leases and tasks nobody has analyzed, and autovacuum does not."""
    with psycopg.connect(database, autocommit=True) as other:
        for table in ("leases", "tasks"):
            other.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
            other.execute(f"TRUNCATE {table}")  # an earlier test may have left its pages and statistics
        yield other
        for table in ("leases", "tasks"):
            other.execute(f"ALTER TABLE {table} RESET (autovacuum_enabled)")


@pytest.mark.parametrize("error", [None, "locked"])
def test_a_new_table_is_analyzed_with_a_heartbeat_once_it_has_rows(postgres_store, unanalyzed, error):
    analyzed = "SELECT relname FROM pg_class WHERE relname IN ('tasks', 'leases') AND reltuples >= 0"
    put(postgres_store, a_lease("one"))
    postgres_store.beat()
    assert unanalyzed.execute(analyzed).fetchall() == []
    for start in range(0, 1000, 250):
        put(postgres_store, *(a_task(f"t{number:04}") for number in range(start, start + 250)))
    if error:
        with unanalyzed.transaction():  # the heartbeat succeeds all the same
            unanalyzed.execute("LOCK TABLE tasks IN SHARE MODE")
            postgres_store.beat()
            assert unanalyzed.execute(analyzed).fetchall() == []
    postgres_store.beat()
    assert unanalyzed.execute(analyzed).fetchall() == [("tasks",)]


@pytest.mark.usefixtures("postgres_store", "unanalyzed")
def test_rows_are_found_by_their_key_in_a_large_table(database, clock):
    """In a database without statistics, after plans were made for an empty table."""
    store = PostgresStore(database, clock)
    tasks = [a_task(f"t{number:04}") for number in range(1200)]
    for start in range(0, len(tasks), 10):
        put(store, *tasks[start : start + 10])
    store.beat()
    with store.transaction() as transaction:
        transaction.load(needs_of(tasks[:3]))
        names = "SELECT name, statement FROM pg_prepared_statements WHERE statement LIKE '%tasks%'"
        plans = {}
        for name, statement in transaction._connection.execute(names).fetchall():
            if "id = ANY" in statement or "MERGE" in statement:
                values = "'a', '{}'" if "id = ANY" in statement else "'[]'"
                plan = transaction._connection.execute(f"EXPLAIN EXECUTE {name} ({values})").fetchall()
                plans[statement] = " ".join(line for (line,) in plan)
    store.close()
    assert plans
    for statement, plan in plans.items():
        assert "Index Scan using tasks_pkey" in plan, (statement, plan)


def test_a_postgres_that_is_too_old_is_refused(database, monkeypatch):
    monkeypatch.setattr(connection, "MIN_VERSION", 99)
    store = PostgresStore(database)
    with pytest.raises(StoreUnavailable, match="needs 99 or newer"):
        store.open()
    store.close()
