"""The cost of a claim does not depend on the number of finished, ready or scheduled tasks."""

import re
import statistics
import time

import psycopg
import pytest

from holdfast.core.row import SECOND
from holdfast.core.task import Task, queue_position
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.tasks.claiming import Claimed, ClaimTasks
from holdfast.engine.verbs.tasks.holding import CompleteTask
from holdfast.store.postgres import PostgresStore, ready_queries
from holdfast.store.sqlite import SqliteStore
from tests.proof_size import FULL, sized
from tests.support import ACCOUNT, ALICE, CAUSE

FINISHED, WAITING = sized(10_000, 1_000_000), sized(1_000, 100_000)
FEW = 1_000
ROUNDS = sized(60, 400)
TOMORROW = 24 * 3600 * SECOND

COLUMNS = [name for name in Task.__struct_fields__ if name not in {"id", "place"}]


@pytest.fixture(params=["sqlite", "postgres"])
def new_store(request, tmp_path):
    """Returns a new, empty store."""
    stores = []

    def new_store():
        if request.param == "sqlite":
            store = SqliteStore(tmp_path / f"{len(stores)}.db")
        else:
            store = PostgresStore(request.getfixturevalue("new_postgres_database")())
        store.open()
        stores.append(store)
        return store

    yield new_store
    for store in stores:
        store.close()


def say(store, statement):
    """Execute SQL directly: a million rows through the engine would take an hour."""
    if store.name == "sqlite":
        return store._writer.execute(statement).fetchall()
    with psycopg.connect(store._url) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def fill(store, prefix, count, **columns):
    """Insert tasks of one kind, and their count."""
    row = Task(ACCOUNT, prefix, version=1, type="work", **columns)
    with store.read() as reader:
        now = reader.now
    row_values = {name: getattr(row, name) for name in COLUMNS}
    row_values |= {"created_at": now, "changed_at": now}
    shown = ", ".join(
        "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value).lower()
        for value in row_values.values()
    )
    if store.name == "sqlite":
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})"
        number = "printf('%09d', i)"
    else:
        numbers, number = "WITH n AS (SELECT generate_series(1, {}) AS i)", "lpad(i::text, 9, '0')"
    identity = f"'{prefix}' || {number}, {queue_position(now, row.scheduled_at)} + i FROM n"
    names = ", ".join([*COLUMNS, "id", "place"])
    say(store, f"{numbers.format(count)} INSERT INTO tasks ({names}) SELECT {shown}, {identity}")
    say(
        store,
        f"INSERT INTO task_counts VALUES ('{ACCOUNT}', 'work', '{row.state}', {count})"
        " ON CONFLICT (account, type, state) DO UPDATE SET total = task_counts.total + excluded.total",
    )


def deep(store):
    """A store with finished tasks, a long queue, and scheduled tasks of a higher priority."""
    with store.read() as reader:
        tomorrow = reader.now + TOMORROW
    fill(store, "tsk_a", FINISHED, state="completed")
    fill(store, "tsk_b", WAITING, ready=True)
    fill(store, "tsk_c", WAITING, priority=100, scheduled_at=tomorrow)
    return store


def shallow(store):
    fill(store, "tsk_b", FEW, ready=True)
    return store


def claim(engine, seed):
    """(seconds, claimed tasks)."""
    command = ClaimTasks(account=ACCOUNT, cause=CAUSE, by=ALICE, worker="w", seed=seed, types=("work",))
    started = time.perf_counter()
    outcome = engine.call(command)
    taken = time.perf_counter() - started
    assert isinstance(outcome, Claimed)
    return taken, outcome.taken[0]


def test_a_claim_is_as_fast_with_a_million_tasks_as_with_a_thousand(new_store):
    engines = [Engine(deep(new_store())), Engine(shallow(new_store()))]
    for engine in engines:
        engine.start()
    times = [[], []]
    try:
        for number in range(ROUNDS):
            for engine, measured in zip(engines, times, strict=True):  # side by side: the machine's speed wanders
                seconds, taken = claim(engine, b"%16d" % number)
                assert taken.task.id.startswith("tsk_b")
                measured.append(seconds)
                engine.call(CompleteTask(account=ACCOUNT, cause=CAUSE, task_id=taken.task.id, lease_id=taken.lease_id))
    finally:
        for engine in engines:
            engine.stop()
    ratio = statistics.median(times[0]) / statistics.median(times[1])
    if FULL:
        assert ratio <= 1.3, f"{ratio:.2f} times as long"


def test_a_claim_reads_no_more_tasks_than_it_claims(new_store):
    store = deep(new_store())
    if store.name == "sqlite":
        from holdfast.store.sqlite import ready_queries as lite

        plan = say(store, "EXPLAIN QUERY PLAN " + re.sub(r"\?\d*", "'x'", lite.READY))
        plan_text = " ".join(row[3] for row in plan)
        assert "USING INDEX tasks_ready" in plan_text
        assert "TEMP B-TREE" not in plan_text
        return
    with psycopg.connect(store._url) as connection:
        query = ready_queries.READY.replace("$1", "%s")
        plan = connection.execute(
            "EXPLAIN (ANALYZE, FORMAT JSON) " + query, (f'[["{ACCOUNT}", "work", 1]]',)
        ).fetchone()[0]
    scans = [node for node in nodes(plan[0]["Plan"]) if node.get("Relation Name") == "tasks"]
    assert scans
    for scan in scans:
        assert scan.get("Index Name") in {"tasks_ready", "tasks_with_key_order"}, scan
        assert scan["Actual Rows"] <= 1


def nodes(plan):
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)
