"""Idempotency-Keys on tasks: a repeated request is answered and has no second effect."""

from __future__ import annotations

from holdfast.core.task import CLAIMED, PENDING, Task
from holdfast.engine.command import Once, Replayed
from holdfast.engine.verbs.tasks.claiming import Claimed, Empty
from tests.support import every, run, transact
from tests.task_commands import create, fail, lease_of, take


def render(outcome):
    if isinstance(outcome, Claimed):
        return 200, ",".join(f"{each.lease_id} {each.task.token}" for each in outcome.taken).encode()
    return 201, outcome.task.id.encode()


def once(key="key-1", fingerprint="body-1"):
    return Once(key, fingerprint, render)


def test_a_repeated_creation_is_answered_and_not_applied_again(store):
    run(store, create("t1", once=once()))
    assert run(store, create("t2", once=once())) == Replayed(201, b"t1")
    assert [task.id for task in every(store, Task)] == ["t1"]


def test_a_repeated_claim_gets_its_first_answer_with_its_real_tokens(store):
    transact(store, create("t1"), create("t2"), create("t3"))
    run(store, take("work", limit=2, once=once()))
    again = run(store, take("work", seed="again", limit=2, once=once()))
    assert again == Replayed(200, f"{lease_of('t1')} 1,{lease_of('t2')} 2".encode())
    assert [task.state for task in every(store, Task)] == [CLAIMED, CLAIMED, PENDING]


def test_a_claim_that_found_no_task_is_not_stored(store):
    assert isinstance(run(store, take("work", once=once())), Empty)
    run(store, create("t1"))
    assert isinstance(run(store, take("work", once=once())), Claimed)


def test_a_repeated_report_gets_its_first_answer_although_the_task_changed_since(store):
    transact(store, create("t1"), take("work"))
    run(store, fail("t1", once=once()))
    run(store, take("work", seed="2"))
    assert run(store, fail("t1", once=once())) == Replayed(201, b"t1")
    assert every(store, Task)[0].state == CLAIMED
