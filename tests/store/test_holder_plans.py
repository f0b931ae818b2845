"""PostgreSQL finds what a principal holds among what its account holds, not among what all accounts hold."""

from __future__ import annotations

import pytest

from holdfast.store.postgres import PostgresStore
from holdfast.store.sql import holding_queries as queries
from tests.store.test_task_plans import nodes
from tests.store.test_tasks import execute_sql
from tests.support import ACCOUNT, START, DrivenClock

LEASES, SESSIONS, ACCOUNTS = 20_000, 10_000, 40
LIVE = 4
"""One row of so many is live."""

FILL = (
    f"""INSERT INTO leases (account, id, version, changed_at, kind, principal, proof, token, ttl, expires_at, ephemeral,
        delay)
    SELECT CASE n % {ACCOUNTS} WHEN 0 THEN '{ACCOUNT}' ELSE 'account' || n % {ACCOUNTS} END, 'name/' || md5(n::text), 1,
        {START}, CASE WHEN live THEN 'job' END, CASE WHEN live THEN 'p' || n % 7 END, CASE WHEN live THEN 'proof' END,
        n, 60, CASE WHEN live THEN {START} + 60000000 END, false, 0
    FROM (SELECT n, n / {ACCOUNTS} % {LIVE} = 0 AS live FROM generate_series(1, {LEASES}) AS n) AS numbers""",
    f"""INSERT INTO sessions (account, id, version, changed_at, principal, ttl, opened_at, expires_at, ended_at,
        ended_how, name, token, generation, lane, context_version)
    SELECT CASE n % {ACCOUNTS} WHEN 0 THEN '{ACCOUNT}' ELSE 'account' || n % {ACCOUNTS} END, md5(n::text), 1, {START},
        'p' || n % 7, 60, {START}, {START} + 60000000, CASE WHEN live THEN NULL ELSE {START} END,
        CASE WHEN live THEN NULL ELSE 'deleted' END, 'agent', 1, 1, false, 0
    FROM (SELECT n, n / {ACCOUNTS} % {LIVE} = 0 AS live FROM generate_series(1, {SESSIONS}) AS n) AS numbers""",
)


@pytest.fixture(scope="module")
def full_postgres(database):
    store = PostgresStore(database, DrivenClock())
    store.open()
    for statement in FILL:
        execute_sql(store, statement)
    yield store
    store.close()


def touched(store, table):
    """(indexes of the table that a read uses, the most rows that one of its steps touches)."""
    query = f"EXPLAIN (ANALYZE, FORMAT JSON) {queries.HELD_BY[table].within_bytes}"
    with store.read() as reader:
        plan = next(iter(reader.execute(query, ACCOUNT, "", START, "p1", None, None, 5, 10_000)))[0][0]["Plan"]
    steps = [node for node in nodes(plan) if node.get("Relation Name") == table]
    rows = [step["Actual Rows"] * step["Actual Loops"] + step.get("Rows Removed by Filter", 0) for step in steps]
    return {node["Index Name"] for node in nodes(plan) if "Index Name" in node}, max(rows)


@pytest.mark.parametrize("analyzed", [False, True], ids=["new", "analyzed"])
@pytest.mark.parametrize(("table", "index", "count"), [("leases", "held", LEASES), ("sessions", "open", SESSIONS)])
def test_a_read_touches_the_live_rows_of_one_account(full_postgres, table, index, count, analyzed):
    if analyzed:
        execute_sql(full_postgres, f"ANALYZE {table}")
    indexes, most = touched(full_postgres, table)
    assert indexes == {f"{table}_{index}", f"{table}_pkey"}
    assert most <= count // ACCOUNTS // LIVE + 1
