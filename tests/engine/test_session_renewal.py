"""Writes that carry the proof of a session renew what it holds; a claim may lengthen the lease of a task."""

from __future__ import annotations

import math

import pytest

from holdfast.core.errors import LeaseLost, SessionExpired, SessionMissing
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.command import Held
from holdfast.engine.session_renewal import ActingSession
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs.job_claims import Claimed
from holdfast.engine.verbs.tasks.claiming import Empty
from tests.reservation_commands import extend, release_paths, renew, reserve
from tests.support import ACCOUNT, ALICE, BOB, START, Keep, claim, every, heartbeat, idle_lane, release, run
from tests.task_commands import beat, begin, complete, create, heartbeat_session, life_of, take, take_this

TTL = 60 * SECOND
THIRD = TTL // 3
ROWS = {"session": (Session, "s1"), "job": (Lease, "job"), "files": (Reservation, "r1"), "task": (Task, "t1")}


@pytest.fixture
def holding_store(store):
    """A session of a minute that holds a job, files and a task, all for a minute."""
    run(store, begin(ttl=TTL))
    proof = {"session_id": "s1", "session_lease_id": life_of()}
    run(store, create("t1", lease_duration=TTL))
    run(store, claim("job", "l1", ttl=TTL, **proof))
    run(store, take("work", **proof))
    run(store, reserve("r1", "src/", session="s1", ttl=TTL))
    return store


def deadlines(store):
    """When each would end, in seconds after the start."""
    with store.read() as reader:
        rows = {name: reader.row(kind, ACCOUNT, row_id) for name, (kind, row_id) in ROWS.items()}
    return {name: (row.expires_at - START) // SECOND for name, row in rows.items() if row.expires_at is not None}


def carried(session_id="s1", lease_id=None, by=ALICE):
    return ActingSession(by.id, session_id, lease_id or life_of())


ALL_AT_0 = dict.fromkeys(ROWS, 60)
"""Everything lasts until a minute after the start."""


def test_a_write_renews_everything_that_its_session_holds_once_a_third_of_the_ttl_has_passed(holding_store, clock):
    run(holding_store, create("other"))
    clock.now = START + THIRD - 1
    proof = {"session_id": "s1", "session_lease_id": life_of()}
    claimed = run(holding_store, claim("second", "l2", **proof))
    assert deadlines(holding_store) == ALL_AT_0
    assert claimed.lease.expires_at == START + TTL, "no longer than the session"
    clock.now = START + THIRD
    taken = run(holding_store, take("work", seed="s2", **proof))
    assert deadlines(holding_store) == dict.fromkeys(ROWS, 80)
    assert taken.taken[0].task.expires_at == clock.now + TTL, "the answer has the renewed deadline of the session"
    clock.now = START + 39 * SECOND
    run(holding_store, release("second", claimed.lease_id, session=carried()))
    assert deadlines(holding_store) == dict.fromkeys(ROWS, 80), "it was renewed 19 s ago"


def test_a_write_renews_no_task_whose_lease_ends_with_its_attempt(store, clock):
    """Each renewal would end at the same moment as before, so the next write would renew it again."""
    run(store, begin(ttl=TTL))
    proof = {"session_id": "s1", "session_lease_id": life_of()}
    run(store, create("t1", lease_duration=TTL, max_run=THIRD))
    assert run(store, take("work", **proof)).taken[0].task.expires_at == START + THIRD
    clock.now = START + THIRD // 2
    versions = set()
    for number in range(3):
        assert isinstance(run(store, take("work", seed=f"s{number}", **proof)), Empty)
        with store.read() as reader:
            versions.add(reader.row(Task, ACCOUNT, "t1").version)
    assert len(versions) == 1


def test_every_kind_of_write_renews_unless_it_lacks_the_lease_id_of_the_session(holding_store, clock):
    store = holding_store
    run(store, claim("theirs", "l2", by=BOB, ttl=1000 * SECOND))
    run(store, claim("finished", "l3", by=BOB))
    run(store, release("finished", "l3", how="done"))
    run(store, claim("alone", "l4", ttl=1000 * SECOND))
    run(store, reserve("r2", "other/", ttl=1000 * SECOND))
    run(store, create("t2", type="second", lease_duration=1000 * SECOND))
    run(store, take("second", seed="s2"))
    session, proof = carried(), {"session_id": "s1", "session_lease_id": life_of()}
    for write in (
        claim("theirs", "l5", **proof),
        claim("finished", "l5", **proof),
        take("nothing", **proof),
        reserve("r3", "docs/", session="s1", session_lease_id=life_of()),
        heartbeat("alone", "l4", session=session),
        release("alone", "l4", session=session),
        renew("r2", session=session),
        extend("r2", "more/", session=session),
        release_paths("r2", session=session),
        beat("t2", "s2", session=session),
        complete("t2", "s2", session=session),
    ):
        clock.now += THIRD
        before = deadlines(store)
        run(store, claim("theirs", "l6", session_id="s1"))
        assert deadlines(store) == before
        run(store, write)
        assert deadlines(store) == dict.fromkeys(ROWS, (clock.now + TTL - START) // SECOND), write


def test_a_claim_that_may_wait_renews_when_it_is_granted_and_not_while_it_waits(holding_store, clock):
    run(holding_store, claim("theirs", "l2", by=BOB, ttl=10 * TTL))
    clock.now = START + THIRD
    proof = {"session_id": "s1", "session_lease_id": life_of()}
    for name, granted, end in (("theirs", Held, 60), ("free", Claimed, 80)):
        ticket = Ticket(claim(name, "l3", **proof), Keep(), deadline=math.inf)
        ((_, outcome),) = idle_lane(holding_store).transaction.run([ticket]).replies
        assert isinstance(outcome, granted)
        assert deadlines(holding_store) == dict.fromkeys(ROWS, end)


def test_a_write_for_a_session_that_is_over_or_of_another_is_refused_and_changes_nothing(holding_store, clock):
    run(holding_store, claim("alone", "l4", ttl=10 * TTL))
    events = len(every(holding_store, Event))
    clock.now = START + THIRD
    for session, refusal in (
        (carried(lease_id="wrong"), LeaseLost),
        (carried("unknown"), SessionMissing),
        (carried(by=BOB), SessionMissing),
    ):
        with pytest.raises(refusal):
            run(holding_store, heartbeat("alone", "l4", session=session))
        assert deadlines(holding_store) == ALL_AT_0
    clock.now = START + TTL
    with pytest.raises(SessionExpired):
        run(holding_store, release("alone", "l4", session=carried()))
    assert len(every(holding_store, Event)) == events


def test_a_short_lease_is_renewed_by_its_own_third_although_its_session_is_not_due(holding_store, clock):
    run(holding_store, claim("short", "l2", ttl=6 * SECOND, session_id="s1"))
    clock.now += 2 * SECOND
    run(holding_store, take("nothing", session_id="s1", session_lease_id=life_of()))
    with holding_store.read() as reader:
        assert reader.row(Lease, ACCOUNT, "short").expires_at == clock.now + 6 * SECOND
        assert reader.row(Session, ACCOUNT, "s1").expires_at == START + TTL


def test_a_claim_lengthens_the_lease_of_a_task_for_its_attempt_and_never_shortens_it(store, clock):
    run(store, create("t1", lease_duration=TTL))
    run(store, create("t2", lease_duration=2000 * SECOND))
    (taken,) = run(store, take_this("t1", lease=5000 * SECOND)).taken
    assert taken.task.expires_at == START + 900 * SECOND, "15 minutes at most"
    clock.now += 100 * SECOND
    assert run(store, beat("t1")).task.expires_at == clock.now + 900 * SECOND
    assert run(store, take_this("t2", lease=900 * SECOND)).taken[0].task.expires_at == clock.now + 2000 * SECOND
    run(store, complete("t2"))
    clock.now += 900 * SECOND
    (again,) = run(store, take_this("t1", seed="s2")).taken
    assert again.task.expires_at == clock.now + TTL, "the next attempt has the task's own lease"


def test_a_session_renews_a_lengthened_lease_in_full(holding_store, clock):
    run(holding_store, create("t2", lease_duration=TTL))
    proof = {"session_id": "s1", "session_lease_id": life_of()}
    run(holding_store, take_this("t2", seed="s2", lease=300 * SECOND, **proof))
    clock.now += 30 * SECOND
    run(holding_store, heartbeat_session())
    with holding_store.read() as reader:
        assert reader.row(Task, ACCOUNT, "t2").expires_at == clock.now + 300 * SECOND
