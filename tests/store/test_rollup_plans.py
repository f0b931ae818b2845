"""PostgreSQL: counting the log looks up single tasks and events, also before there are statistics of the tables."""

from __future__ import annotations

import json

import pytest

from holdfast.store.postgres import PostgresStore
from holdfast.store.sql import rollup_queries as queries
from tests.store.test_task_plans import FILL, ROWS, nodes
from tests.store.test_tasks import execute_sql
from tests.support import ACCOUNT, START, DrivenClock

VERSIONS = 3
LOOKED_UP = 50
DELAYED = ROWS // 6
"""Tasks of all accounts that are not in their queue: with few accounts PostgreSQL may read them by their time."""
EVENTS = f"""
INSERT INTO events (account, subject, version, kind, at, actor, request_id, data, seq)
SELECT account, 'task:' || id, number, 'task.changed', {START}, '', '', '{{}}',
    row_number() OVER (PARTITION BY account ORDER BY id, number)
FROM tasks CROSS JOIN generate_series(1, {VERSIONS}) AS number"""
WANTED = json.dumps([[f"t{100_000 + 30 * number}", VERSIONS] for number in range(LOOKED_UP)])
PLANS = {
    "TASKS_BEFORE": ((ACCOUNT, WANTED, ACCOUNT, ACCOUNT), {"tasks_pkey", "events_of_subject"}, LOOKED_UP),
    "DELAYED_TASKS": ((ACCOUNT, ROWS), {"tasks_ripe", "tasks_scheduled"}, DELAYED),
}


@pytest.fixture(scope="module")
def full_postgres(database):
    store = PostgresStore(database, DrivenClock())
    store.open()
    execute_sql(store, FILL)
    execute_sql(store, EVENTS)
    yield store
    store.close()


@pytest.mark.parametrize("analyzed", [False, True], ids=["new", "analyzed"])
@pytest.mark.parametrize("name", PLANS)
def test_a_pass_finds_tasks_and_events_by_their_index(full_postgres, name, analyzed):
    if analyzed:
        execute_sql(full_postgres, "ANALYZE tasks")
        execute_sql(full_postgres, "ANALYZE events")
    arguments, indexes, most = PLANS[name]
    with full_postgres.read() as reader:
        found = reader.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {getattr(queries, name)}", *arguments)
        plan = next(iter(found))[0][0]["Plan"]
    steps = [node for node in nodes(plan) if node.get("Relation Name") in {"tasks", "events"}]
    assert {node["Node Type"] for node in steps} <= {"Index Scan", "Index Only Scan"}
    assert {node["Index Name"] for node in steps} <= indexes
    touched = [node["Actual Rows"] * node["Actual Loops"] + node.get("Rows Removed by Filter", 0) for node in steps]
    assert 0 < max(touched) <= most
