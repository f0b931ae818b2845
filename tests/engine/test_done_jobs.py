"""Done jobs: a claim gets the result instead of the job, until that is over or the caller claims it again."""

from __future__ import annotations

import json

import pytest

from holdfast.core.errors import LeaseLost
from holdfast.core.lease import DONE, FAILED, RELEASED, UNDELIVERED, Lease
from holdfast.core.plan import DAY
from holdfast.core.row import SECOND
from holdfast.engine.command import Held
from holdfast.engine.verbs.job_claims import Claimed, Done
from holdfast.engine.verbs.locks import Acquired
from tests.engine.test_retention import run_cleanup
from tests.support import (
    ACCOUNT,
    START,
    acquire,
    check_log,
    claim,
    every,
    heartbeat,
    release,
    run,
    transact,
    wait_until,
)  # fmt: skip

RESULT = '{"merged":true}'


def finish(store, name="job", lease_id="l1", done_for=7 * DAY, **more):
    """Claim a job and release it as done."""
    run(store, claim(name, lease_id, owner="first"))
    return run(store, release(name, lease_id, how=DONE, result=RESULT, done_for=done_for, **more)).lease


def row(store, name="job"):
    with store.read() as reader:
        return reader.row(Lease, ACCOUNT, name)


def kinds(store):
    with store.read() as reader:
        return [event.kind for event in reader.events(ACCOUNT, 0, 100)]


def test_a_claim_of_a_done_job_gets_its_result_and_changes_nothing(store):
    finish(store, note="merged in 12 minutes")
    before = row(store)
    outcome = run(store, claim("job", "l2", owner="second"))
    assert isinstance(outcome, Done)
    assert (outcome.lease.result, outcome.lease.done_at) == (RESULT, START)
    assert row(store) == before
    assert kinds(store) == ["lease.claimed", "lease.done"]
    check_log(store)


def test_a_done_job_can_be_claimed_when_its_time_is_over(store, clock):
    finish(store, done_for=10 * SECOND)
    clock.now = START + 10 * SECOND - 1
    assert isinstance(run(store, claim("job", "l2")), Done)
    clock.now += 1
    claimed = run(store, claim("job", "l2"))
    assert (type(claimed), claimed.previous.how, claimed.lease.again_at) == (Claimed, DONE, None)


def test_a_job_that_is_done_for_good_stays_done(store, clock):
    finish(store, done_for=None)
    clock.advance(100 * 365 * 24 * 3600)
    assert isinstance(run(store, claim("job", "l2")), Done)


def test_a_done_job_can_be_claimed_again_and_the_log_has_it(store):
    finish(store)
    claimed = run(store, claim("job", "l2", again=True))
    assert (claimed.previous.how, claimed.lease.again_at) == (DONE, START)
    assert isinstance(run(store, claim("job", "l3")), Held)
    with store.read() as reader:
        assert json.loads(reader.events(ACCOUNT, 2, 1)[0].data)["again_at"] == START
    run(store, release("job", "l2"))
    assert isinstance(run(store, claim("job", "l3")), Claimed)
    check_log(store)


def test_a_job_that_was_claimed_again_and_not_delivered_is_still_done(store):
    finish(store)
    run(store, claim("job", "l2", again=True))
    run(store, release("job", "l2", how=UNDELIVERED))
    outcome = run(store, claim("job", "l3"))
    assert (type(outcome), outcome.lease.result, outcome.lease.again_at) == (Done, RESULT, None)


def test_a_second_attempt_that_expires_leaves_the_job_free(store, clock):
    finish(store)
    run(store, claim("job", "l2", again=True))
    clock.advance(60)
    assert isinstance(run(store, claim("job", "l3")), Claimed)


def test_a_failed_job_can_be_claimed_and_the_next_owner_learns_it(store):
    run(store, claim("job", "l1", owner="first"))
    run(store, release("job", "l1", how=FAILED, result='"no disk"', note="half way"))
    claimed = run(store, claim("job", "l2"))
    assert (claimed.previous.how, claimed.previous.note, claimed.lease.result) == (FAILED, "half way", '"no disk"')
    assert kinds(store) == ["lease.claimed", "lease.failed", "lease.claimed"]


def test_the_result_of_an_earlier_owner_does_not_outlive_a_plain_release(store):
    finish(store)
    run(store, claim("job", "l2", again=True))
    assert run(store, release("job", "l2")).lease.result is None


@pytest.mark.parametrize("how", [DONE, FAILED, RELEASED])
def test_a_holder_that_ended_the_lease_itself_is_told_so(memory, how):
    run(memory, claim("job", "l1"))
    run(memory, release("job", "l1", how=how))
    with pytest.raises(LeaseLost) as caught:
        run(memory, heartbeat("job", "l1"))
    assert caught.value.facts["ended"] == how
    assert "already released" in caught.value.message


def test_a_lock_of_the_same_name_knows_nothing_of_it(store):
    finish(store, "name")
    assert isinstance(run(store, acquire("name")), Acquired)
    clear = row(store, "name")
    assert clear.kind == "lock"


def test_every_waiter_gets_the_result_at_once(opened, started):
    store = opened("memory")
    engine = started(store)
    engine.call(claim("job", "l1", ttl=60 * SECOND))
    outcomes = Outcomes()
    for number in range(20):
        engine.submit(claim("job", f"w{number}"), outcomes, number, 30.0)
    wait_until(lambda: engine.name_waiters.length(("leases", ACCOUNT, "job")) == 20)
    engine.call(release("job", "l1", how=DONE, result=RESULT, done_for=DAY))
    wait_until(lambda: len(outcomes.found) == 20, 5)
    assert {type(outcome) for outcome in outcomes.found} == {Done}


class Outcomes:
    def __init__(self):
        self.found = []

    def deliver(self, replies):
        self.found += [outcome for _, outcome in replies]


def test_done_jobs_outlive_retention(store, clock):
    finish(store, "for a week", "l1", done_for=7 * DAY)
    finish(store, "for good", "l2", done_for=None)
    transact(store, claim("free", "l3"), release("free", "l3"))
    clock.advance(5 * 24 * 3600)
    run_cleanup(store, names=DAY)
    assert {lease.id for lease in every(store, Lease)} == {"for a week", "for good"}
    clock.advance(3 * 24 * 3600)
    run_cleanup(store, names=DAY)
    assert {lease.id for lease in every(store, Lease)} == {"for good"}
    check_log(store)


def test_of_too_many_done_jobs_the_oldest_are_forgotten(store, clock):
    for number in range(5):
        finish(store, f"job-{number}", f"l{number}")
        clock.advance(1)
    transact(store, claim("job-0", "again", again=True))
    run_cleanup(store, done_jobs=3)
    assert {lease.id for lease in every(store, Lease)} == {"job-0", "job-2", "job-3", "job-4"}
    check_log(store)
