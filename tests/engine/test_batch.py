"""Batch commands: each item has its outcome and its Idempotency-Key, and a refused item changes nothing."""

from __future__ import annotations

import pytest

from holdfast.core.errors import IdempotencyConflict, Invalid, InvalidTransition, TaskMissing, ValueRefused
from holdfast.core.event import Event
from holdfast.core.task import CLAIMED, COMPLETED, PENDING, Task
from holdfast.engine.backlog import Backlog
from holdfast.engine.command import Once, Replayed
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs.batch import Batch, Outcomes
from holdfast.engine.verbs.tasks.base import TaskOutcome
from holdfast.engine.verbs.tasks.creating import Created
from tests.support import ACCOUNT, START, Keep, check_log, every, idle_lane, load_view, run, transact
from tests.task_commands import BASE, cancel, complete, create, fail, requeue, take


def batch(*items, **more):
    return Batch(**(BASE | {"items": items} | more))


def once(key="key-1", fingerprint="body-1"):
    return Once(key, fingerprint, lambda outcome: (200, _body(outcome)))


def _body(outcome):
    if isinstance(outcome, Outcomes):
        return ",".join(type(each).__name__ for each in outcome.each).encode()
    return outcome.task.id.encode()


def types_of(outcome):
    return [type(each) for each in outcome.each]


def test_each_item_has_its_outcome_in_order(store):
    transact(store, create("t1"), create("t2"), take("work", limit=2))
    outcome = run(store, batch(complete("t1"), complete("t9"), create("t3"), fail("t2", "wrong"), cancel("t1")))
    assert types_of(outcome)[:3] == [TaskOutcome, TaskMissing, Created]
    assert outcome.each[0].task.state == COMPLETED
    assert [task.state for task in every(store, Task)] == [COMPLETED, CLAIMED, PENDING]
    check_log(store)


def test_a_refused_item_changes_nothing_and_does_not_stop_the_others(store, clock):
    transact(store, create("t1"), take("work"))
    clock.advance(300)
    before = every(store, Event)
    # Requeueing first ends the expired lease, then finds no dead letter: that ending must be undone.
    outcome = run(store, batch(create("t2", scheduled_at=START), requeue("t1"), cancel("t9"), create("t3")))
    assert types_of(outcome) == [Invalid, InvalidTransition, TaskMissing, Created]
    assert every(store, Task)[0].state == CLAIMED
    assert [event.subject for event in every(store, Event)[len(before) :]] == ["task:t3"]
    check_log(store)


def test_items_see_the_changes_of_earlier_items(store):
    outcome = run(store, batch(create("t1"), create("t2", unique_key="k"), create("t3", unique_key="k"), cancel("t1")))
    assert types_of(outcome) == [Created, Created, Created, TaskOutcome]
    assert (outcome.each[2].task.id, outcome.each[3].task.state) == ("t2", "cancelled")
    check_log(store)


def test_a_batch_of_refused_items_changes_nothing(store):
    assert types_of(run(store, batch(cancel("t1"), complete("t2")))) == [TaskMissing, TaskMissing]
    assert every(store, Event) == []


def test_a_batch_shares_a_transaction_with_other_commands(store):
    transact(store, create("t1"), take("work"))
    first, many, second = transact(store, create("t2"), batch(complete("t1"), create("t3")), take("work", limit=9))
    assert isinstance(first, Created)
    assert types_of(many) == [TaskOutcome, Created]
    assert [each.task.id for each in second.taken] == ["t2", "t3"]
    check_log(store)


def test_each_item_may_have_an_idempotency_key(store):
    run(store, batch(create("t1", once=once("a")), create("t2", once=once("b")), create("t3")))
    again = run(store, batch(create("t4", once=once("b")), create("t5", once=once("c")), create("t6", once=once("a"))))
    assert types_of(again) == [Replayed, Created, Replayed]
    assert [each.body for each in again.each if isinstance(each, Replayed)] == [b"t2", b"t1"]
    assert [task.id for task in every(store, Task)] == ["t1", "t2", "t3", "t5"]
    check_log(store)


def test_two_items_under_one_idempotency_key_have_one_effect(store):
    same = run(store, batch(create("t1", once=once()), create("t2", once=once())))
    assert types_of(same) == [Created, Replayed]
    other = run(store, batch(create("t3", once=once("k", "one")), create("t4", once=once("k", "another"))))
    assert types_of(other) == [Created, IdempotencyConflict]
    assert [task.id for task in every(store, Task)] == ["t1", "t3"]
    check_log(store)


def test_the_answer_to_a_refused_item_is_not_stored(store):
    refused = run(store, batch(complete("t1", once=once()), create("t1")))
    assert types_of(refused) == [TaskMissing, Created]
    run(store, take("work"))
    assert types_of(run(store, batch(complete("t1", once=once())))) == [TaskOutcome]


def test_a_batch_and_its_items_may_have_idempotency_keys(store):
    many = batch(create("t1", once=once("item")), cancel("t9"), once=once("whole"))
    run(store, many)
    assert run(store, many) == Replayed(200, b"Created,TaskMissing")
    view = load_view(store, answers=((ACCOUNT, "item"), (ACCOUNT, "whole")))
    assert (view.answer(ACCOUNT, "item").body, view.answer(ACCOUNT, "whole").status) == ("t1", 200)
    assert isinstance(run(store, create("t2", once=once("item"))), Replayed)
    assert [task.id for task in every(store, Task)] == ["t1"]


def taken_together(*commands):
    """The transactions into which a backlog groups these commands."""
    backlog = Backlog()
    for command in commands:
        backlog.put(Ticket(command, Keep()))
    batches = []
    while sum(map(len, batches)) < len(commands):
        batches.append([ticket.command for ticket in backlog.take()])
    return batches


ALONE, ITEM = create("t1", once=once()), batch(create("t2", once=once()))
WHOLE = batch(create("t3"), once=once())


@pytest.mark.parametrize("pair", [(ALONE, ITEM), (ITEM, ALONE), (ALONE, WHOLE), (ITEM, WHOLE), (ITEM, ITEM)])
def test_equal_idempotency_keys_are_never_in_one_transaction(store, pair):
    batches = taken_together(*pair)
    assert [len(together) for together in batches] == [1, 1]
    for together in batches:
        transact(store, *together)
    assert len(every(store, Task)) == 1


def test_the_weight_of_a_batch_is_the_sum_of_its_items(store):
    giant = batch(*(create(f"t{number}") for number in range(1_500)))
    assert [len(together) for together in taken_together(giant, giant, create("x"))] == [1, 2]
    assert batch(create("a", payload="x" * 100), complete("b", result="y" * 50)).size() == 150


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_batch_with_a_refused_value_fails_completely_and_alone(opened, clock, kind):
    store, replies = opened(kind, clock), {}
    lane = idle_lane(
        store, lambda committed: replies.update((ticket.slot, outcome) for ticket, outcome in committed.replies)
    )
    refused_batch = batch(create("t1"), create("t2", priority=2**63))
    lane._work([Ticket(refused_batch, Keep(), "refused"), Ticket(create("t3"), Keep(), "fine")])
    assert (type(replies["refused"]), type(replies["fine"])) == (ValueRefused, Created)
    assert [task.id for task in every(store, Task)] == ["t3"]
    check_log(store)


def test_an_item_answered_with_an_existing_task_never_creates_another(store):
    run(store, create("t1", unique_key="nightly"))
    request = batch(create("t2", unique_key="nightly", once=once()))
    assert run(store, request).each[0].deduplicated
    transact(store, take("work"), complete("t1"))
    (repeated,) = run(store, request).each
    assert isinstance(repeated, Replayed)
    assert repeated.body == b"t1"
    assert [task.id for task in every(store, Task)] == ["t1"]
