"""The store interface, dependencies: which tasks need which, loaded a part at a time, and kept by retention."""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.task import CANCELLED, COMPLETED, DEAD, LIVE_STATES, PENDING, STATES, RelatedTask, Task
from holdfast.engine.view import View
from holdfast.store.needs import MAX_DEPENDENTS, MAX_DEPENDENTS_PER_BATCH, AllNeeds, Needs, dependents_of_each
from tests.proof_size import FULL
from tests.store.task_rows import by_key
from tests.support import ACCOUNT, START, check_log, empty, every, load_view, put


def plain(name: str, **more) -> Task:
    return replace(tasks.create(Task(ACCOUNT, name, type="work"), START), **more)


def dependent(name: str, *on: str, **more) -> Task:
    task = tasks.depend_on(Task(ACCOUNT, name, type="work"), [Task(ACCOUNT, needed) for needed in on])
    return replace(tasks.create(task, START), **more)


def load_dependents(store, *needed: str):
    keys = tuple((ACCOUNT, name) for name in needed)
    view = load_view(store, rows=tuple((Task.table, *key) for key in keys), dependents=keys)
    return view, {name: view.dependents.get((ACCOUNT, name)) for name in needed}


def test_dependents_are_listed_and_loaded_with_the_task_they_need(store):
    put(store, plain("a", awaited=True), plain("b", awaited=True), dependent("d1", "a", "b"), dependent("d2", "a"))
    view, found = load_dependents(store, "a", "b")
    assert found == {"a": ["d1", "d2"], "b": ["d1"]}
    assert [view.find(Task, ACCOUNT, name).unmet_flags for name in ("d1", "d2")] == ["11", "1"]
    check_log(store)


def test_a_task_that_nobody_awaits_costs_no_look_at_its_dependents(store):
    put(store, plain("a"), dependent("d1", "a"))
    view, found = load_dependents(store, "a")
    assert (found, view.find(Task, ACCOUNT, "d1")) == ({"a": None}, None)


def test_finished_dependents_are_not_loaded(store):
    ended = [dependent("d1", "a", state=CANCELLED, waits_for=None), dependent("d3", "a", state=COMPLETED)]
    ended.append(dependent("d4", "a", state=DEAD, unmet=0, unmet_flags="0"))
    put(store, plain("a", awaited=True), *ended, dependent("d2", "a"))
    assert load_dependents(store, "a")[1] == {"a": ["d2"]}


def test_a_dead_letter_that_waited_when_it_became_one_is_loaded(store):
    dead = dependent("d1", "a", state=DEAD, waits_for=None)
    put(store, plain("a", awaited=True), dead, dependent("d2", "a"))
    assert load_dependents(store, "a")[1] == {"a": ["d1", "d2"]}


def test_the_next_dependents_follow_the_last_one_that_learned(store):
    put(store, plain("a", awaited=True, state=COMPLETED, ready=False, releasing="d2"))
    put(store, *(dependent(f"d{number}", "a") for number in range(1, 5)))
    assert load_dependents(store, "a")[1] == {"a": ["d3", "d4"]}


def test_so_many_dependents_are_loaded_at_once(store):
    names = [f"d{number:04}" for number in range(MAX_DEPENDENTS + 2)]
    put(store, plain("a", awaited=True), *(dependent(name, "a") for name in names))
    view, found = load_dependents(store, "a")
    assert found == {"a": names[:MAX_DEPENDENTS]}
    assert view.find(Task, ACCOUNT, names[MAX_DEPENDENTS]) is None


@pytest.mark.parametrize("count", [1, 4, 5, 100, 256, 10_000])
def test_a_batch_loads_a_bounded_number_of_dependents(count):
    each = dependents_of_each(count)
    assert 1 <= each <= MAX_DEPENDENTS
    assert each == 1 or each * count <= MAX_DEPENDENTS_PER_BATCH


def test_the_dependencies_of_a_removed_task_are_removed(store):
    put(store, plain("a", awaited=True), dependent("d1", "a"), dependent("d2", "a"))
    with store.transaction() as transaction:
        view = load_for_change(transaction, "d1")
        view.remove(view.find(Task, ACCOUNT, "d1"), "purged")
        view.keep()
        transaction.save(view.changes([]))
    assert load_dependents(store, "a")[1] == {"a": ["d2"]}
    check_log(store)


def load_for_change(transaction, name):
    return View(transaction.load(AllNeeds.of([Needs(rows=((Task.table, ACCOUNT, name),))])))


def test_dependents_are_read_in_pages_in_any_state(store):
    rows = [dependent("d1", "a", state=CANCELLED, waits_for=None), dependent("d2", "a"), dependent("d3", "a")]
    put(store, plain("a", awaited=True), *rows, dependent("d4", "b"))
    with store.read() as reader:
        assert reader.dependents(ACCOUNT, "a", "", 2) == [
            RelatedTask("d1", "work", CANCELLED),
            RelatedTask("d2", "work", PENDING, tasks.DEPENDENCIES),
        ]
        assert [each.id for each in reader.dependents(ACCOUNT, "a", "d2", 2)] == ["d3"]
        assert reader.dependents("other", "a", "", 2) == []


def test_results_are_read_by_id_and_large_ones_left_out(store):
    results = {"a": '"äää"', "b": '"ääää"'}
    put(store, *(plain(name, result=result, state=COMPLETED, ready=False) for name, result in results.items()))
    put(store, plain("c"))
    with store.read() as reader:
        assert reader.tasks_with_results(ACCOUNT, ["c", "b", "a", "x"], 8) == [
            RelatedTask("a", "work", COMPLETED, None, '"äää"', 8),
            RelatedTask("b", "work", COMPLETED, None, None, 10),
            RelatedTask("c", "work", PENDING),
        ]


def test_what_is_left_to_tell_is_due_until_it_is_told(store):
    put(store, plain("a", awaited=True, state=COMPLETED, ready=False, releasing=""))
    with store.read() as reader:
        assert reader.due(10) == [(Task.table, ACCOUNT, "a")]
        assert reader.next_deadline() == START
    put(store, replace(every(store, Task)[0], releasing=None))
    with store.read() as reader:
        assert (reader.due(10), reader.next_deadline()) == ([], None)


def test_a_dependent_that_another_server_has_locked_is_listed_and_not_waited_for(postgres_store):
    put(postgres_store, plain("a", awaited=True), dependent("d1", "a"), dependent("d2", "a"))
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        with postgres_store.transaction(1) as transaction:
            load_for_change(transaction, "d1")
            locked.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    assert locked.wait(10)
    view, found = load_dependents(postgres_store, "a")
    done.set()
    holder.join()
    assert found == {"a": ["d1", "d2"]}
    assert [view.find(Task, ACCOUNT, name) is not None for name in ("d1", "d2")] == [False, True]


rows = st.lists(
    st.builds(
        lambda number, state, on, are_met: replace(
            dependent(f"t{number}", *sorted(on)) if on else plain(f"t{number}"),
            state=state, ready=False, waits_for=None, awaited=number % 4 > 0,
            proof="p" if state == "claimed" else None, expires_at=START if state == "claimed" else None,
            **({"unmet": 0, "unmet_flags": "0" * len(on)} if on and are_met else {}),
        ),
        st.integers(0, 9), st.sampled_from(STATES), st.sets(st.sampled_from([f"t{n}" for n in range(10)]), max_size=3),
        st.booleans(),
    ),
    min_size=3, max_size=10, unique_by=by_key,
)  # fmt: skip


@settings(max_examples=200 if FULL else 8, suppress_health_check=list(HealthCheck))
@given(rows=rows)
def test_retention_finds_the_finished_tasks_that_none_needs_which_may_still_run(store, rows):
    empty(store)
    put(store, *rows)
    needed = {name for row in rows if tasks.needs_dependencies(row) for name in tasks.needed_ids(row)}
    finished = [row for row in rows if row.state not in LIVE_STATES]
    kept = {row.id for row in finished if row.awaited and row.id in needed}
    with store.read() as reader:
        found = {key[2] for key in reader.finished_before(ACCOUNT, START + 1, 100, dead=True)}
    assert found == {row.id for row in finished} - kept
