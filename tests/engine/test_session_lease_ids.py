"""Lease ids of what was claimed for a session can be computed again with the session's secret."""

from __future__ import annotations

import pytest

from holdfast.core.errors import LeaseLost, LeaseSuperseded
from holdfast.core.event import Event
from holdfast.core.holdings.lease_ids import recover_lease_id, recover_session_lease_id
from holdfast.core.lease import Lease
from holdfast.core.session import Session
from holdfast.core.task import Task
from tests.support import claim, every, heartbeat, release, run, transact
from tests.task_commands import beat, begin, create, release_task, take, take_this

SECRET = "secret-life-1"


@pytest.fixture
def begun(store):
    return run(store, begin())


def claim_for(store, begun, number=1):
    """(lease id of a job, lease id of a task) claimed with the lease id of the session."""
    proof = {"session_id": begun.session.id, "session_lease_id": begun.lease_id}
    job = run(store, claim("job", f"random-{number}", holder=f"holder-{number}", **proof))
    taken = run(store, take("work", seed=f"seed-{number}", **proof)).taken[0]
    return job.lease_id, taken.lease_id


def recovered(store, secret=SECRET):
    """What the secret and the rows give: (lease id of the session, of the job, of the task)."""
    (session,), (job,), (task,) = every(store, Session), every(store, Lease), every(store, Task)
    lease_id = recover_session_lease_id(secret, session)
    return lease_id, recover_lease_id(lease_id or "", job), recover_lease_id(lease_id or "", task)


def test_the_secret_gives_every_lease_id_of_the_session(store, begun):
    run(store, create("t1"))
    held = claim_for(store, begun)
    assert recovered(store) == (begun.lease_id, *held)
    assert recovered(store, "a guess") == (None, None, None)
    run(store, heartbeat("job", held[0]))
    run(store, beat("t1", lease_id=held[1]))
    assert recovered(store) == (begun.lease_id, *held), "a renewal changes no lease id"
    everything = repr([every(store, kind) for kind in (Session, Lease, Task, Event)])
    assert not [secret for secret in (SECRET, begun.lease_id, *held) if secret in everything]


def test_resuming_makes_lease_ids_that_the_secret_gives_too(store, begun):
    run(store, create("t1"))
    former = claim_for(store, begun)
    newest = run(store, begin(seed="life-2", secret=begun.secret))
    lease_ids = recovered(store)
    assert lease_ids[0] == newest.lease_id != begun.lease_id
    assert not set(lease_ids) & {None, *former}
    with pytest.raises(LeaseLost):
        run(store, heartbeat("job", former[0]))
    with pytest.raises(LeaseSuperseded):
        run(store, beat("t1", lease_id=former[1]))
    run(store, heartbeat("job", lease_ids[1]))
    run(store, beat("t1", lease_id=lease_ids[2]))


def test_a_second_claim_in_the_same_moment_has_another_lease_id(store, begun):
    run(store, create("t1"))
    first = claim_for(store, begun)
    transact(store, release("job", first[0]), release_task("t1", lease_id=first[1]))
    second = claim_for(store, begun, 2)
    assert not set(first) & set(second)
    assert recovered(store) == (begun.lease_id, *second)


def test_what_was_claimed_without_the_lease_id_of_the_session_is_recovered_after_it_is_resumed(store, begun):
    run(store, create("t1"))
    run(store, claim("job", "random", session_id="s1"))
    run(store, take_this("t1", session_id="s1"))
    assert recovered(store) == (begun.lease_id, None, None)
    newest = run(store, begin(seed="life-2", secret=begun.secret))
    lease_ids = recovered(store)
    assert lease_ids[0] == newest.lease_id
    assert None not in lease_ids


def test_a_session_that_gets_a_new_secret_is_not_recovered_with_the_old_one(store, begun, clock):
    clock.advance(60)
    again = run(store, begin(seed="life-2"))
    (session,) = every(store, Session)
    assert recover_session_lease_id(SECRET, session) is None
    assert recover_session_lease_id("secret-life-2", session) == again.lease_id
