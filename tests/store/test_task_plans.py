"""Query plans: the cost of frequent queries depends on what they return, not on what is stored."""

from __future__ import annotations

import json
import re

import pytest

from holdfast.core.task import PENDING, STATES
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres import queries as postgres_queries
from holdfast.store.postgres import ready_queries as postgres_ready
from holdfast.store.sql import holding_queries
from holdfast.store.sql import queries as shared
from holdfast.store.sqlite import queries as sqlite_queries
from holdfast.store.sqlite import ready_queries as sqlite_ready
from tests.store.test_tasks import execute_sql
from tests.support import ACCOUNT, START, DrivenClock, make_store

postgres, sqlite = (postgres_ready, postgres_queries), (sqlite_ready, sqlite_queries)

ROWS, ACCOUNTS, SETS, KEYS = 6_000, 5, 20, 10
DUE = 10
"""How many tasks of each account and kind have passed their deadline."""

FILL = f"""
WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {ROWS - 1}),
    kinds AS (SELECT n, n % 6 AS kind, n / 6 AS place FROM numbers)
INSERT INTO tasks (account, id, version, changed_at, type, payload, priority, max_attempts, lease_duration, created_at,
    tag, state, ready, scheduled_at, place, expires_at, requires, concurrency_key)
SELECT CASE place % {ACCOUNTS} WHEN 0 THEN '{ACCOUNT}' ELSE 'account' || place % {ACCOUNTS} END, 't' || (100000 + n), 1,
    {START}, 'work', '{{}}', n % 7, 3, 1, {START}, 'tag' || place % 30,
    CASE kind WHEN 0 THEN 'pending' WHEN 1 THEN 'pending' WHEN 2 THEN 'claimed' WHEN 3 THEN 'completed'
        WHEN 4 THEN 'dead_letter' ELSE 'cancelled' END,
    kind = 0,
    CASE WHEN kind = 1 THEN CASE WHEN place < {DUE * ACCOUNTS} THEN {START} - 1 ELSE {START} + n END END,
    {START} + n,
    CASE WHEN kind = 2 THEN CASE WHEN place < {DUE * ACCOUNTS} THEN {START} - 1 ELSE {START} + n END END,
    CASE WHEN place / {ACCOUNTS} % 2 = 1 THEN 'cpu,word' || (10 + place / {ACCOUNTS} / 2 % {SETS}) END,
    CASE WHEN place / {ACCOUNTS} % 4 = 0 THEN 'key' || (10 + place / {ACCOUNTS} / 4 % {KEYS}) END
FROM kinds
"""
COUNTS = "INSERT INTO task_counts SELECT account, type, state, count(*) FROM tasks GROUP BY account, type, state"

QUERIES = {
    # name: (index, or several, how many rows it may touch, whether their order must come from the index)
    "READY": ("tasks_ready tasks_with_key_order", 5, True),
    "READY_ANY": ("tasks_ready_any", 5, True),
    "DUE_TASKS": ("tasks_ripe", DUE * ACCOUNTS, False),
    "DUE_TASKS_ANY": ("tasks_ripe", DUE * ACCOUNTS, False),
    # On PostgreSQL the head of the queue is looked through first.
    "READY_REQUIRING": ("tasks_requiring", postgres_ready.NEAR, False),
    "READY_REQUIRING_ANY": ("tasks_requiring_any", postgres_ready.NEAR, False),
    "DUE_REQUIRING": ("tasks_ripe", DUE * ACCOUNTS, False),
    "DUE_REQUIRING_ANY": ("tasks_ripe", DUE * ACCOUNTS, False),
    "DUE": ("tasks_due", DUE * ACCOUNTS, False),
    "TASK_IDS_BY_STATE": ("tasks_listed", 5, True),
    "TASKS_BY_TAG": ("tasks_tagged", 5, True),
    "TASKS_BY_TAG.within_bytes": ("tasks_tagged", 5, True),
    "TASKS_BY_ID": ("tasks_pkey", 5, True),
    "TASKS_BY_ID.within_bytes": ("tasks_pkey", 5, True),
    "TASKS_AMONG.within_bytes": ("tasks_pkey", 5, False),
    "FINISHED_TASKS": ("tasks_finished", 5, True),
    "OLDEST_READY": ("tasks_ready_any", 7 * ACCOUNTS, False),  # the head of each priority of each account
    "OLDEST_REQUIRING": ("tasks_requiring_any", 7 * ACCOUNTS * SETS, False),
}
ARGUMENTS = {
    "OLDEST_READY": (),
    "OLDEST_REQUIRING": (),
    "DUE": (*[START] * 8, "", 5),
    "TASK_IDS_BY_STATE": (ACCOUNT, "work", PENDING, "~", 5),
    "TASKS_BY_TAG": (ACCOUNT, "tag0", "~", 5),
    "TASKS_BY_TAG.within_bytes": (ACCOUNT, "tag0", "~", 5, 10_000),
    "TASKS_BY_ID": (ACCOUNT, "~", 5),
    "TASKS_BY_ID.within_bytes": (ACCOUNT, "~", 5, 10_000),
    "TASKS_AMONG.within_bytes": (ACCOUNT, json.dumps([[f"t{100_000 + 30 * n}"] for n in range(5)]), 5, 10_000),
    "FINISHED_TASKS": (ACCOUNT, START + 1, True, 5),
}


def find_statement(dialect, name):
    """A statement of a dialect, or one that both share."""
    name, _, variant = name.partition(".")
    found = next(getattr(module, name) for module in (*dialect, shared) if hasattr(module, name))
    return found if isinstance(found, str) else getattr(found, variant or "plain")


def fill_store(store):
    """A store with many tasks in every state, few of which are claimable or due."""
    execute_sql(store, FILL)
    execute_sql(store, COUNTS)
    with store.read() as reader:
        counted = {state: total for _, state, total in reader.task_counts(ACCOUNT)}
    assert counted == {state: ROWS // 6 // ACCOUNTS * (2 if state == PENDING else 1) for state in STATES}
    return store


@pytest.fixture(scope="module")
def full_postgres(database):
    store = PostgresStore(database, DrivenClock())
    store.open()
    fill_store(store)
    execute_sql(store, "ANALYZE tasks")
    yield store
    store.close()


@pytest.fixture(scope="module")
def full_sqlite(tmp_path_factory):
    store = make_store("sqlite", tmp_path_factory.mktemp("full"), str, DrivenClock())
    yield fill_store(store)
    store.close()


# -- PostgreSQL: executed plans----------------------------------------------------------------------------------


def nodes(plan):
    yield plan
    for inner in plan.get("Plans", []):
        yield from nodes(inner)


def explain(store, name):
    """The plan of an executed statement, with the settings of our database sessions."""
    statement = find_statement(postgres, name)
    if name.startswith(("READY", "DUE_TASKS", "DUE_REQUIRING")):
        able = ["cpu,word10,word11", ""] if "REQUIRING" in name else []
        wanted = json.dumps([[ACCOUNT, "" if name.endswith("_ANY") else "work", *able, 5]])
        statement = statement.replace("$1", f"'{wanted}'").replace("$2", str(START))
    with store.read() as reader:
        if "REQUIRING" in name:  # only lanes execute it
            reader.fetch("SET enable_bitmapscan = off")
        found = reader.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *ARGUMENTS.get(name, ()))
        return next(iter(found))[0][0]["Plan"]


@pytest.mark.parametrize("name", QUERIES)
def test_postgres_reads_few_more_tasks_than_it_returns(full_postgres, name):
    index, most, ordered = QUERIES[name]
    plan = explain(full_postgres, name)
    of_tasks = [node for node in nodes(plan) if node.get("Relation Name") == "tasks"]
    assert of_tasks
    assert {node["Node Type"] for node in of_tasks} <= {"Index Scan", "Index Only Scan"}
    if not name.startswith("DUE_"):  # few tasks have come due, so either of the two indexes is fine
        assert set(index.split()) <= {node["Index Name"] for node in of_tasks}
    touched = [node["Actual Rows"] * node["Actual Loops"] + node.get("Rows Removed by Filter", 0) for node in of_tasks]
    assert max(touched) <= most, f"{name} touched {touched} of {ROWS}"
    sorts = [node for node in nodes(plan) if "Sort" in node["Node Type"]]
    sorted_tasks = [node for node in sorts if any(inner in of_tasks for inner in nodes(node))]
    assert not (ordered and sorted_tasks), f"{name} sorts what the index has in order"


@pytest.mark.parametrize("name", ["KEYED_NEAR", "REQUIRING_NEAR"])
def test_postgres_passes_over_tasks_of_full_keys_in_the_order_of_an_index(full_postgres, name):
    values = {"$7": "'cpu,word10'", "$6": "1", "$5": "1", "$4": "'[]'", "$3": "1", "$2": "'work'", "$1": f"'{ACCOUNT}'"}
    statement = getattr(postgres_ready, name)
    for parameter, value in values.items():
        statement = statement.replace(parameter, value)
    with full_postgres.read() as reader:
        reader.fetch("SET enable_bitmapscan = off")
        found = reader.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        plan = next(iter(found))[0][0]["Plan"]
    parts = {node.get("Subplan Name"): [*nodes(node)] for node in nodes(plan)}
    order = "tasks_with_key_order" if name == "KEYED_NEAR" else "tasks_requiring_order"
    for part, index in (("CTE heads", order), ("CTE counted", "tasks_running_keys")):
        (scan,) = (node for node in parts[part] if node.get("Relation Name") == "tasks")
        assert (scan["Node Type"], scan["Index Name"]) == ("Index Only Scan", index)
    assert not [node for node in parts["CTE heads"] if "Sort" in node["Node Type"]]


def test_postgres_finds_the_tasks_of_a_principal_among_those_that_its_account_holds(full_postgres):
    query, where = holding_queries.HELD_BY["tasks"], (ACCOUNT, "", START, "p1", None, None)
    with full_postgres.read() as reader:
        found = reader.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query.within_bytes}", *where, 5, 10_000)
        plan = next(iter(found))[0][0]["Plan"]
    indexes = {node["Index Name"] for node in nodes(plan) if "Index Name" in node}
    assert indexes == {"task_counts_pkey", "tasks_listed", "tasks_pkey"}
    of_tasks = [node for node in nodes(plan) if node.get("Relation Name") == "tasks"]
    touched = [node["Actual Rows"] * node["Actual Loops"] + node.get("Rows Removed by Filter", 0) for node in of_tasks]
    assert max(touched) <= ROWS // 6 // ACCOUNTS


# -- SQLite: planned index use -----------------------------------------------------------------------------------


STEPS = {
    # On SQLite the sets of required words are listed by statements of their own.
    "READY_NEAR": ("tasks_requiring_order", sqlite_ready.NEAR, True),
    "READY_NEAR_ANY": ("tasks_requiring_order_any", sqlite_ready.NEAR, True),
    "READY_SET": ("tasks_requiring", 1, True),
    "READY_TYPES": ("tasks_ready", 1, True),
    "GROUPED_TYPES": ("tasks_grouped", 1, True),
    "KEYED_FIRST": ("tasks_with_key_order", sqlite_ready.WINDOW, True),
    "KEYED_NEAR": ("tasks_with_key_order", sqlite_ready.WINDOW, True),
    "KEYED_BEYOND": ("tasks_with_key_order", sqlite_ready.WINDOW, True),
    "REQUIRING_NEAR": ("tasks_requiring_order", sqlite_ready.WINDOW, True),
    "REQUIRING_BEYOND": ("tasks_requiring_order", sqlite_ready.WINDOW, True),
    "KEYED_HEADS": ("tasks_grouped", 5 * KEYS, False),
    "KEYLESS_HEADS": ("tasks_grouped", 5, False),
    "DUE_HEADS": ("tasks_ripe", DUE * ACCOUNTS, False),
    "READY_SET_ANY": ("tasks_requiring_any", 1, True),
    "DUE_SETS": ("tasks_ripe", DUE * ACCOUNTS, False),
    "DUE_SETS_ANY": ("tasks_ripe", DUE * ACCOUNTS, False),
}


@pytest.mark.parametrize("name", QUERIES | STEPS)
def test_sqlite_finds_tasks_by_their_index(full_sqlite, name):
    index, _, ordered = (QUERIES | STEPS)[name]
    index = "sqlite_autoindex_tasks_1" if index == "tasks_pkey" else index
    arguments = {
        "READY": (ACCOUNT, "work", 5),
        "READY_TYPES": (ACCOUNT,),
        "GROUPED_TYPES": (ACCOUNT,),
        "KEYED_FIRST": (ACCOUNT, "work", "[]", 1),
        "KEYED_NEAR": (ACCOUNT, "work", "[]", 1),
        "KEYED_BEYOND": (ACCOUNT, "work"),
        "REQUIRING_NEAR": (ACCOUNT, "work", "[]", 1),
        "REQUIRING_BEYOND": (ACCOUNT, "work"),
        "KEYED_HEADS": (ACCOUNT, "work", '[""]', 5, '["key10"]'),
        "KEYLESS_HEADS": (ACCOUNT, "work", '["cpu,word10"]', 5),
        "DUE_HEADS": (ACCOUNT, "work", START),
        "READY_ANY": (ACCOUNT, 5),
        "DUE_TASKS": (ACCOUNT, "work", START, 5),
        "DUE_TASKS_ANY": (ACCOUNT, START, 5),
        "READY_NEAR": (ACCOUNT, "work"),
        "READY_NEAR_ANY": (ACCOUNT,),
        "READY_SET": (ACCOUNT, "work", "cpu"),
        "READY_SET_ANY": (ACCOUNT, "cpu"),
        "READY_REQUIRING": (ACCOUNT, "work", '["cpu,word10"]', 5),
        "READY_REQUIRING_ANY": (ACCOUNT, '["cpu,word10"]', 5),
        "DUE_SETS": (ACCOUNT, "work", START),
        "DUE_SETS_ANY": (ACCOUNT, START),
        "DUE_REQUIRING": (ACCOUNT, "work", START, '["cpu,word10"]', 5),
        "DUE_REQUIRING_ANY": (ACCOUNT, START, '["cpu,word10"]', 5),
    } | ARGUMENTS
    statement = find_statement(sqlite, name)
    with full_sqlite.read() as reader:
        steps = [row[3] for row in reader.execute(f"EXPLAIN QUERY PLAN {statement}", *arguments[name])]
    of_tasks = [step for step in steps if re.match(r"(SCAN|SEARCH) tasks\b", step)]
    assert of_tasks
    assert all(step.startswith("SEARCH") for step in of_tasks), steps
    # Few tasks have come due, so any of their indexes is fine, but not the key of all tasks.
    indexes = {"tasks_ripe", "tasks_scheduled"} if name.startswith("DUE_") else {*index.split()}
    times = {"tasks_scheduled", "tasks_deadline", "tasks_releasing"}
    assert all(any(f"INDEX {each} " in step for each in indexes | times) for step in of_tasks), steps
    used = {each for each in indexes for step in of_tasks if f"INDEX {each} " in step}
    assert used if name.startswith("DUE_") else used == indexes, steps
    is_sorted_again = name.endswith(".within_bytes")  # only the page itself, which is small
    assert is_sorted_again or not (ordered and any("TEMP B-TREE" in step for step in steps)), steps
