"""Answers give the effective deadline: the earlier of a lease's own and that of the session it was claimed for."""

from __future__ import annotations

import pytest

from holdfast.core.deadlines import heartbeat_interval
from holdfast.core.errors import LeaseLost, TaskClaimed
from holdfast.core.lease import Lease
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.command import Held
from holdfast.transport.deadlines import read_effective
from tests.support import ACCOUNT, START, claim, heartbeat, run
from tests.task_commands import beat, begin, cancel, create, heartbeat_session, take, take_this

SESSION_TTL = 10 * SECOND
LONG = 120 * SECOND


@pytest.fixture
def session_store(store):
    """A session of ten seconds, and a task that is leased for five minutes."""
    run(store, begin(ttl=SESSION_TTL))
    run(store, create("t1"))
    return store


def claim_for_session(store, ttl=LONG):
    return run(store, claim("job", "l1", session_id="s1", ttl=ttl))


def test_a_claim_of_a_job_lasts_no_longer_than_its_session(session_store):
    claimed = claim_for_session(session_store)
    assert claimed.lease.expires_at == START + SESSION_TTL
    assert heartbeat_interval(claimed.lease, claimed.now) == SESSION_TTL // 3
    with session_store.read() as reader:  # both deadlines are kept, because each is renewed on its own
        assert reader.row(Lease, ACCOUNT, "job").expires_at == START + LONG


def test_a_lease_that_ends_before_its_session_keeps_its_own_deadline(session_store):
    assert claim_for_session(session_store, ttl=2 * SECOND).lease.expires_at == START + 2 * SECOND


def test_a_renewal_of_a_job_lasts_no_longer_than_its_session(session_store, clock):
    claim_for_session(session_store)
    clock.now += 4 * SECOND
    assert run(session_store, heartbeat("job", "l1")).lease.expires_at == START + SESSION_TTL
    run(session_store, heartbeat_session())
    assert run(session_store, heartbeat("job", "l1")).lease.expires_at == clock.now + SESSION_TTL


def test_a_holder_cannot_act_after_the_deadline_of_its_session_although_nothing_has_ended_it_yet(session_store, clock):
    claim_for_session(session_store)
    clock.now += SESSION_TTL
    with pytest.raises(LeaseLost):
        run(session_store, heartbeat("job", "l1"))


def test_a_caller_that_finds_a_job_held_gets_the_effective_deadline(session_store):
    claim_for_session(session_store)
    held = run(session_store, claim("job", "l2"))
    assert isinstance(held, Held)
    assert held.lease.expires_at == START + SESSION_TTL
    with pytest.raises(LeaseLost) as lost:
        run(session_store, heartbeat("job", "l2"))
    assert lost.value.facts["expires_at"] == START + SESSION_TTL


def test_a_claim_and_a_renewal_of_a_task_last_no_longer_than_its_session(session_store, clock):
    (taken,) = run(session_store, take("work", session_id="s1")).taken
    assert taken.task.expires_at == START + SESSION_TTL
    clock.now += 4 * SECOND
    renewed = run(session_store, beat("t1"))
    assert renewed.task.expires_at == START + SESSION_TTL
    assert heartbeat_interval(renewed.task, clock.now) == 2 * SECOND
    with pytest.raises(TaskClaimed) as refused:
        run(session_store, take_this("t1", seed="s2"))
    assert refused.value.facts["expires_at"] == START + SESSION_TTL


def test_a_task_that_is_asked_to_stop_or_created_again_has_its_effective_deadline(session_store):
    run(session_store, create("t2", unique_key="k", type="keyed"))
    (taken,) = run(session_store, take("keyed", session_id="s1")).taken
    assert taken.task.expires_at == START + SESSION_TTL
    for answer in (
        run(session_store, cancel("t2", mode="request")),
        run(session_store, cancel("t2", mode="request")),
        run(session_store, create("t3", unique_key="k", type="keyed")),
    ):
        assert (answer.task.id, answer.task.expires_at) == ("t2", START + SESSION_TTL)


def test_a_session_lists_what_it_holds_with_effective_deadlines(session_store, clock):
    claim_for_session(session_store)
    run(session_store, take("work", session_id="s1"))
    state = run(session_store, heartbeat_session())
    assert [row.expires_at for row in (*state.jobs, *state.tasks)] == [clock.now + SESSION_TTL] * 2
    assert state.session.expires_at == clock.now + SESSION_TTL


def test_rows_that_are_read_have_effective_deadlines(session_store):
    claim_for_session(session_store)
    run(session_store, claim("alone", "l2", ttl=LONG))
    run(session_store, take("work", session_id="s1"))
    with session_store.read() as reader:
        jobs = read_effective(reader, reader.leases(ACCOUNT, "", "", 10))
        tasks = read_effective(reader, reader.rows_after(Task, "", "", 10))
        assert reader.row(Session, ACCOUNT, "s1").expires_at == START + SESSION_TTL
    assert {job.id: job.expires_at for job in jobs} == {"alone": START + LONG, "job": START + SESSION_TTL}
    assert [task.expires_at for task in tasks] == [START + SESSION_TTL]
