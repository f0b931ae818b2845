"""The store interface, writes of tasks: every column is kept, counts are exact, final states stay."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.core.session import Session
from holdfast.core.task import CANCELLED, CLAIMED, COMPLETED, DEAD, PENDING, STATES, Task
from holdfast.engine.view import View
from holdfast.store.contract import Rerun
from holdfast.store.needs import AllNeeds, Needs
from tests.postgres import AS_SERVER
from tests.proof_size import FULL
from tests.store.task_rows import wild_pairs
from tests.support import ACCOUNT, START, a_session, check_log, empty, every, load_view, put
from tests.task_commands import a_claimed, a_task

EXAMPLES = 400 if FULL else 6


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(pairs=wild_pairs())
def test_every_column_of_a_task_is_loaded_as_it_was_saved(store, pairs):
    empty(store)
    for version, rows in enumerate(zip(*pairs, strict=True), 1):
        put(store, *(replace(row, session=None) for row in rows))
        expected = [replace(row, session=None, version=version, changed_at=START) for row in rows]
        assert every(store, Task) == expected
        assert [type(row.ready) for row in every(store, Task)] == [bool] * len(rows)
        view = load_view(store, rows=tuple(row.key for row in rows))
        assert [view.find(Task, "a", row.id) for row in rows] == expected
    check_log(store)


def remove(transaction, *rows, kind="purged"):
    view = View(transaction.load(AllNeeds.of([Needs(rows=tuple(row.key for row in rows))])))
    for row in rows:
        view.remove(view.at(row.key), kind)
    return view.changes([])


def test_a_removed_task_is_absent_and_its_removal_is_logged(store):
    put(store, a_task("t1"), a_task("t2"))
    with store.transaction() as transaction:
        transaction.save(remove(transaction, a_task("t1")))
    assert [task.id for task in every(store, Task)] == ["t2"]
    last = every(store, Event)[-1]
    assert (last.subject, last.kind, last.version) == ("task:t1", "task.purged", 2)
    check_log(store)


def test_a_task_that_changed_despite_its_lock_is_not_removed(postgres_store):
    put(postgres_store, a_task())
    with pytest.raises(Rerun), postgres_store.transaction() as transaction:
        changes = remove(transaction, a_task())
        changes.loaded[a_task().key] = a_task(version=7)
        transaction.save(changes)
    assert [task.version for task in every(postgres_store, Task)] == [1]


def test_a_task_created_and_removed_in_one_batch_is_not_stored(store):
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([])))
        view.remove(view.put(a_task(), "created"), "purged")
        transaction.save(view.changes([]))
    assert every(store, Task) == []
    assert [event.kind for event in every(store, Event)] == ["task.created", "task.purged"]
    check_log(store)


def test_tasks_are_counted_by_type_and_state_as_they_change(store):
    put(store, a_task("t1"), a_task("t2"), a_task("t3", type="other"), a_task("t4", account="abroad"))
    put(store, a_claimed("t1"))
    put(store, a_task("t1", state=COMPLETED, ready=False, attempt=1))
    with store.read() as reader:
        assert reader.task_counts(ACCOUNT) == [("other", PENDING, 1), ("work", COMPLETED, 1), ("work", PENDING, 1)]
        assert reader.task_counts("abroad") == [("work", PENDING, 1)]
        assert reader.task_counts("nowhere") == []
    with store.transaction() as transaction:
        transaction.save(remove(transaction, a_task("t1"), a_task("t3")))
    with store.read() as reader:
        assert reader.task_counts(ACCOUNT) == [("work", PENDING, 1)]
    check_log(store)


def test_a_snapshot_changes_only_the_version_of_a_task(store, clock):
    put(store, a_task(payload='{"a":1}'))
    clock.advance(9)
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(rows=(a_task().key,))])))
        view.snapshot(view.at(a_task().key))
        assert view.offered() == {}
        transaction.save(view.changes([]))
    (task,) = every(store, Task)
    assert (task.version, task.changed_at, task.payload) == (2, START, '{"a":1}')
    check_log(store)


# -- loading -----------------------------------------------------------------------------------------------------


def test_loading_a_session_loads_its_tasks_and_loading_a_task_its_session(store):
    put(
        store, a_session("s1"), a_session("s2"), a_session("s1", account="other"),
        a_claimed("t1", session="s1"), a_claimed("t2", session="s1", ends=START - 1), a_claimed("t3", session="s2"),
        a_claimed("t4"), a_claimed("t5", account="other", session="s1"), a_task("t6"),
    )  # fmt: skip
    view = load_view(store, holdings=((ACCOUNT, "s1"),))
    assert [task.id for task in view.tasks_of(ACCOUNT, "s1")] == ["t1", "t2"]
    assert view.find(Task, ACCOUNT, "t3") is None
    assert view.tasks_of("other", "s1") == []
    assert load_view(store, rows=(a_task("t3").key,)).find(Session, ACCOUNT, "s2") is not None
    with store.read() as reader:
        assert [task.id for task in reader.holdings(Task, (ACCOUNT, "s1"), "", 10)] == ["t1", "t2"]


def test_loading_a_unique_key_loads_its_live_task(store):
    put(
        store, a_task("t1", unique_key="k", state=COMPLETED, ready=False), a_task("t2", unique_key="k"),
        a_task("t3", unique_key="k", account="other"), a_task("t4", unique_key="other key"),
        a_task("t5", unique_key="k", state=DEAD, ready=False),
    )  # fmt: skip
    assert load_view(store, unique_keys=((ACCOUNT, "k"),)).live_task_under(ACCOUNT, "k").id == "t2"
    assert load_view(store, unique_keys=((ACCOUNT, "free"),)).live_task_under(ACCOUNT, "free") is None
    view = load_view(store, same_key_as=((ACCOUNT, "t5"),))
    assert view.live_task_under(ACCOUNT, "k").id == "t2"
    assert load_view(store, same_key_as=((ACCOUNT, "t6"),)).live_task_under(ACCOUNT, "k") is None


def test_loading_a_queue_loads_its_first_tasks_up_to_the_limit(store):
    put(
        store, a_task("t1"), a_task("t2", priority=5), a_task("t3", place=START - 1), a_task("t4"),
        a_task("t5", type="other", priority=9), a_task("t6", account="abroad"), a_claimed("t7"),
        a_task("t8", ready=False, scheduled_at=START + 1), a_task("t9", state=DEAD, ready=False),
    )  # fmt: skip

    def in_order(types, count):
        view = load_view(store, ready=tuple((ACCOUNT, name, count) for name in types or ("",)))
        found = []
        while (task := view.next_ready(ACCOUNT, types)) is not None:
            found.append(task.id)
            view.put(replace(task, state=CLAIMED, ready=False), "claimed")
        return found

    assert in_order(("work",), 100) == ["t2", "t3", "t1", "t4"]
    assert in_order(("work",), 2) == ["t2", "t3"]
    assert in_order(("work", "other"), 100) == ["t5", "t2", "t3", "t1", "t4"]
    assert in_order((), 100) == ["t5", "t2", "t3", "t1", "t4"]
    assert in_order(("none",), 100) == []


# -- checks of the database --------------------------------------------------------------------------------------


def execute_sql(store, statement):
    """Execute a statement outside of the store, as another program would."""
    if store.name == "sqlite":
        store._writer.execute(statement)
    else:
        with psycopg.connect(store._url, options=AS_SERVER) as connection:
            connection.execute(statement)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("final", [COMPLETED, CANCELLED, DEAD])
def test_the_database_refuses_to_change_a_final_state(sql_store, final, state):
    put(sql_store, a_task(state=final, ready=False, attempt=2))
    statement = f"UPDATE tasks SET state = '{state}'"
    if state == final or (final, state) == (DEAD, PENDING):
        execute_sql(sql_store, statement)
        assert every(sql_store, Task)[0].state == state
        return
    with pytest.raises(Exception, match="never changes its state"):
        execute_sql(sql_store, statement)
    assert every(sql_store, Task)[0].state == final


def test_the_database_refuses_to_lower_an_attempt(sql_store):
    put(sql_store, a_claimed(attempt=2))
    with pytest.raises(Exception, match="never changes"):
        execute_sql(sql_store, "UPDATE tasks SET state = 'pending', attempt = 1")


def test_the_database_refuses_an_unknown_state(sql_store):
    put(sql_store, a_task())
    with pytest.raises(Exception, match=r"(?i)check constraint"):
        execute_sql(sql_store, "UPDATE tasks SET state = 'lost'")


def test_two_live_tasks_never_share_a_unique_key(sql_store):
    put(sql_store, a_task("t1", unique_key="k"), a_task("t2", unique_key="k", state=DEAD, ready=False))
    with pytest.raises(Exception, match=r"(?i)unique"):
        execute_sql(sql_store, "UPDATE tasks SET state = 'pending' WHERE id = 't2'")


def test_the_database_deletes_only_events_below_the_floor(sql_store):
    for priority in range(5):
        put(sql_store, a_task(priority=priority))
    with pytest.raises(Exception, match="retention alone"):
        execute_sql(sql_store, "DELETE FROM events WHERE seq = 1")
    sql_store.forget_events(ACCOUNT, 2)
    assert [event.seq for event in every(sql_store, Event)] == [3, 4, 5]
    with pytest.raises(Exception, match="retention alone"):
        execute_sql(sql_store, "DELETE FROM events WHERE seq = 3")
    with pytest.raises(Exception, match="retention alone"):
        execute_sql(sql_store, "DELETE FROM events")
    with pytest.raises(Exception, match="never change"):
        execute_sql(sql_store, "UPDATE events SET at = 0")
    with sql_store.read() as reader:
        assert reader.log_bounds(ACCOUNT) == (2, 5)
    assert [event.seq for event in every(sql_store, Event)] == [3, 4, 5]


def test_the_database_refuses_to_truncate_the_log(postgres_store):
    put(postgres_store, a_task())
    with pytest.raises(Exception, match="retention alone"):
        execute_sql(postgres_store, "TRUNCATE events")
    assert len(every(postgres_store, Event)) == 1
