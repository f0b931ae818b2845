"""Only the newest generation of a session claims for it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core.errors import Invalid, LeaseLost
from holdfast.core.lease import Lease
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.verbs.tasks.claiming import Claimed
from tests.support import claim, every, run
from tests.task_commands import begin, create, take, take_this


@pytest.fixture
def generations(store):
    """(the previous generation, the newest one) of one session, and a ready task."""
    former = run(store, begin(seed="life-1"))
    newest = run(store, begin(seed="life-2", secret=former.secret))
    run(store, create("t1"))
    assert newest.session.generation == 2
    return former, newest


@pytest.mark.parametrize("verb", [take, take_this])
def test_an_older_generation_of_a_session_claims_no_task(store, generations, verb):
    former, newest = generations
    what = "work" if verb is take else "t1"
    with pytest.raises(LeaseLost):
        run(store, verb(what, session_id=former.session.id, session_lease_id=former.lease_id))
    assert every(store, Task)[0].state == "pending"
    taken = run(store, verb(what, session_id=newest.session.id, session_lease_id=newest.lease_id))
    assert isinstance(taken, Claimed)


@pytest.mark.parametrize("verb", [take(), take_this(), claim()], ids=["next task", "task by id", "job"])
def test_a_resumed_session_claims_nothing_without_its_lease_id(store, generations, verb):
    with pytest.raises(Invalid) as refused:
        run(store, replace(verb, session_id=generations[1].session.id))
    assert refused.value.errors[0]["pointer"] == "/session_lease_id"
    assert every(store, Task)[0].state == "pending"
    assert every(store, Lease) == []


def test_a_session_that_was_never_resumed_may_omit_its_lease_id(store):
    run(store, begin())
    run(store, claim("job", "l1", session_id="s1"))


def test_an_older_generation_of_a_session_claims_no_job(store, generations):
    former, newest = generations
    with pytest.raises(LeaseLost):
        run(store, claim("job", "l1", session_id=former.session.id, session_lease_id=former.lease_id))
    run(store, claim("job", "l1", session_id=newest.session.id, session_lease_id=newest.lease_id))
    assert every(store, Session)[0].generation == 2
