"""Unique keys: at most one live task has each, also within one batch."""

from __future__ import annotations

import pytest

from holdfast.core.errors import InvalidTransition
from holdfast.core.event import Event
from holdfast.core.row import SECOND
from holdfast.core.task import CANCELLED, CLAIMED, DEAD, LIVE_STATES, PENDING, Task
from tests.support import check_log, every, run, transact
from tests.task_commands import LEASE, cancel, complete, create, fail, requeue, take


def test_creating_a_second_task_under_a_unique_key_returns_the_live_one(store):
    first = run(store, create("t1", unique_key="k", payload='{"a":1}'))
    again = run(store, create("t2", unique_key="k", payload='{"b":2}'))
    assert (first.deduplicated, again.deduplicated) == (False, True)
    assert (again.task.id, again.task.payload) == ("t1", '{"a":1}')
    assert [event.kind for event in every(store, Event)] == ["task.created"]
    assert run(store, create("t3", unique_key="k", account="other")).deduplicated is False
    assert run(store, create("t4", unique_key="other")).deduplicated is False


def test_duplicates_in_one_batch_are_one_task(store):
    outcomes = transact(store, *(create(f"t{number}", unique_key="k") for number in range(5)))
    assert [outcome.deduplicated for outcome in outcomes] == [False, True, True, True, True]
    assert {outcome.task.id for outcome in outcomes} == {"t0"}
    assert [task.id for task in every(store, Task)] == ["t0"]


def test_replace_payload_changes_a_pending_task_and_not_a_claimed_one(store):
    run(store, create("t1", unique_key="k", payload='{"a":1}'))
    replaced = run(store, create("t2", unique_key="k", payload='{"b":2}', priority=7, replaces=True))
    assert (replaced.deduplicated, replaced.task.id) == (True, "t1")
    assert (replaced.task.payload, replaced.task.priority, replaced.task.version) == ('{"b":2}', 7, 2)
    run(store, take("work"))
    kept = run(store, create("t3", unique_key="k", payload='{"c":3}', replaces=True))
    assert (kept.task.payload, kept.task.state, kept.task.version) == ('{"b":2}', CLAIMED, 3)
    assert [event.kind for event in every(store, Event)] == ["task.created", "task.replaced", "task.claimed"]
    check_log(store)


@pytest.mark.parametrize("ending", [complete("t1"), fail("t1", permanent=True), cancel("t1", "force")])
def test_a_unique_key_is_free_after_its_task_has_finished(store, ending):
    run(store, create("t1", unique_key="k"))
    run(store, take("work"))
    run(store, ending)
    assert run(store, create("t2", unique_key="k")).task.id == "t2"
    check_log(store)


def test_a_unique_key_is_free_in_the_batch_in_which_its_task_finishes(store):
    transact(store, create("t1", unique_key="k"), take("work"))
    _, made, again = transact(store, complete("t1"), create("t2", unique_key="k"), create("t3", unique_key="k"))
    assert (made.deduplicated, again.task.id) == (False, "t2")
    check_log(store)


def test_a_unique_key_is_free_after_the_last_lapse_before_the_sweep(store, clock):
    run(store, create("t1", unique_key="k", max_attempts=1))
    run(store, take("work"))
    clock.advance(LEASE // SECOND)
    assert run(store, create("t2", unique_key="k")).task.id == "t2"
    assert [(task.id, task.state) for task in every(store, Task)] == [("t1", DEAD), ("t2", PENDING)]
    check_log(store)


def test_a_dead_letter_is_requeued_only_when_no_live_task_has_its_unique_key(store):
    transact(store, create("t1", unique_key="k", max_attempts=1), take("work"))
    transact(store, fail("t1"), create("t2", unique_key="k"))
    with pytest.raises(InvalidTransition) as caught:
        run(store, requeue("t1"))
    assert caught.value.facts == {"twin": "t2"}
    run(store, cancel("t2"))
    assert run(store, requeue("t1")).task.state == PENDING
    assert run(store, create("t3", unique_key="k")).task.id == "t1"
    assert [task.state for task in every(store, Task)] == [PENDING, CANCELLED]
    check_log(store)


@pytest.mark.parametrize(
    ("following", "state"),
    [
        ((take("work", seed="2"),), CLAIMED),
        ((cancel("t1"),), CANCELLED),
        ((take("work", seed="2"), complete("t1", "2")), "completed"),
    ],
    ids=["claimed", "cancelled", "completed"],
)
def test_a_dead_letter_can_be_requeued_and_changed_in_one_batch(store, following, state):
    transact(store, create("t1", max_attempts=1), take("work"))
    run(store, fail("t1"))
    outcomes = transact(store, requeue("t1"), *following)
    assert not any(isinstance(outcome, BaseException) for outcome in outcomes)
    assert every(store, Task)[0].state == state
    check_log(store)


@pytest.mark.parametrize("back", ["t1", "t3"])
@pytest.mark.parametrize("ending", [cancel("t2"), complete("t2", "other"), fail("t2", "other", permanent=True)])
def test_a_dead_letter_can_be_requeued_in_the_batch_that_frees_its_unique_key(store, back, ending):
    """Independent of the order in which a database reads the two rows."""
    for name in ("t1", "t3"):
        transact(store, create(name, unique_key="k", max_attempts=1), take("work", seed=name))
        run(store, fail(name, name))
    run(store, create("t2", unique_key="k"))
    if ending != cancel("t2"):
        run(store, take("work", seed="other"))
    outcomes = transact(store, ending, requeue(back))
    assert outcomes[1].task.state == PENDING
    assert {task.id for task in every(store, Task) if task.state in LIVE_STATES} == {back}
    check_log(store)
