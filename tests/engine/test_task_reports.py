"""Reports of the outcome of a task: by whom they are accepted, and what a repeated one is answered."""

from __future__ import annotations

import pytest

from holdfast.core.errors import Invalid, InvalidTransition, LeaseExpired, LeaseSuperseded, WrongToken
from holdfast.core.row import SECOND
from holdfast.core.task import CLAIMED, COMPLETED
from tests.support import START, run
from tests.task_commands import (
    HOLDER_VERBS,
    LEASE,
    beat,
    complete,
    event_kinds,
    fail,
    release_task,
    sweep,
    take_this,
    the_task,
    undeliver,
)


@pytest.mark.parametrize("seed", ["s1", None], ids=["with its lease id", "without"])
@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("verb", HOLDER_VERBS)
def test_a_holder_whose_lease_expired_changes_nothing_before_and_after_the_sweep(
    claimed_store, clock, verb, swept, seed
):
    clock.advance(LEASE // SECOND)
    if swept:
        sweep(claimed_store)
    before = the_task(claimed_store)
    with pytest.raises(LeaseExpired):
        run(claimed_store, HOLDER_VERBS[verb]("t1", seed))
    assert the_task(claimed_store) == before


def test_a_lease_is_held_until_its_last_microsecond(claimed_store, clock):
    clock.now = START + LEASE - 1
    assert run(claimed_store, complete()).task.state == COMPLETED


def test_a_token_that_is_sent_must_match(claimed_store):
    run(claimed_store, beat(token=1))
    with pytest.raises(WrongToken):
        run(claimed_store, complete(token=2))
    assert the_task(claimed_store).state == CLAIMED


def test_an_account_can_require_lease_ids(claimed_store):
    with pytest.raises(Invalid) as caught:
        run(claimed_store, complete("t1", None, needs_lease_id=True))
    assert caught.value.errors[0]["pointer"] == "/lease_id"
    assert run(claimed_store, complete("t1", None)).task.state == COMPLETED


@pytest.mark.parametrize(
    "verb",
    [
        complete(result='{"a":1}'),
        fail(reason="no"),
        fail(permanent=True),
        release_task(),
        release_task(outcome="snoozed"),
    ],
    ids=["complete", "fail", "fail for good", "release", "snooze"],
)
def test_a_repeated_report_is_answered_and_not_applied_again(claimed_store, verb):
    first = run(claimed_store, verb)
    again = run(claimed_store, verb)
    assert again.task == first.task == the_task(claimed_store)
    assert len(event_kinds(claimed_store)) == 3


def test_another_report_after_the_attempt_ended_is_refused(claimed_store):
    run(claimed_store, complete())
    for verb in (fail(), release_task(), beat(), undeliver()):
        with pytest.raises(InvalidTransition):
            run(claimed_store, verb)


@pytest.mark.parametrize("seed", ["s1", None], ids=["with its lease id", "without one"])
@pytest.mark.parametrize(
    ("again", "accepted"),
    [
        ({}, True),
        ({"result": '{"b":[2],"a":1}'}, True),
        ({"output_id": "out_1"}, True),
        ({"result": '{"a":2}'}, False),
        ({"result": '{"a":true,"b":[2]}'}, False),
        ({"result": '{"a":1,"b":[2]}', "output_id": "out_2"}, False),
    ],
    ids=["no body", "equal result", "equal output", "another result", "another type", "another output"],
)
def test_a_task_completed_again_is_refused_if_the_result_would_be_dropped(claimed_store, seed, again, accepted):
    first = run(claimed_store, complete(result='{"a":1,"b":[2]}', output_id="out_1")).task
    if accepted:
        assert run(claimed_store, complete("t1", seed, **again)).task == first
        return
    with pytest.raises(InvalidTransition):
        run(claimed_store, complete("t1", seed, **again))
    assert the_task(claimed_store) == first


def test_a_failure_reported_again_for_another_reason_is_refused(claimed_store):
    run(claimed_store, fail(reason="no", code="E1"))
    run(claimed_store, fail())
    for other in ({"reason": "yes"}, {"reason": "no", "code": "E2"}):
        with pytest.raises(InvalidTransition):
            run(claimed_store, fail(**other))


@pytest.mark.parametrize("verb", HOLDER_VERBS)
def test_without_a_lease_id_a_worker_may_not_act_for_its_successor(claimed_store, clock, verb):
    clock.advance(LEASE // SECOND)
    run(claimed_store, take_this("t1", seed="s2", worker="successor"))
    before = the_task(claimed_store)
    with pytest.raises(LeaseSuperseded) as refused:
        run(claimed_store, HOLDER_VERBS[verb]("t1", None, worker="first"))
    assert refused.value.facts["held_by"] == "successor"
    assert the_task(claimed_store) == before
    run(claimed_store, HOLDER_VERBS[verb]("t1", None, worker="successor"))


def test_without_a_lease_id_a_worker_may_not_confirm_what_its_successor_completed(claimed_store, clock):
    clock.advance(LEASE // SECOND)
    run(claimed_store, take_this("t1", seed="s2", worker="successor"))
    run(claimed_store, complete("t1", "s2"))
    with pytest.raises(LeaseSuperseded):
        run(claimed_store, complete("t1", None, worker="first"))
    run(claimed_store, complete("t1", None, worker="successor"))


def test_where_lease_ids_are_required_not_even_a_repeat_is_answered_without_one(claimed_store):
    run(claimed_store, complete())
    with pytest.raises(Invalid):
        run(claimed_store, complete("t1", None, needs_lease_id=True))
