"""Named sessions: resuming keeps holdings and context and fences off the previous generation."""

from __future__ import annotations

import pytest

from holdfast.core import session as sessions
from holdfast.core.errors import (
    ContextConflict,
    LeaseExpired,
    LeaseLost,
    LeaseSuperseded,
    SessionExpired,
    SessionMissing,
    SessionTaken,
)
from holdfast.core.event import Event
from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.lease import Lease
from holdfast.core.row import SECOND
from holdfast.core.session import Context, Session
from holdfast.core.task import DEAD, PENDING, Task, last_attempt
from holdfast.engine.expiry import ExpireSession
from holdfast.engine.verbs.octostore_sessions import EndSession
from tests.support import ALICE, BOB, START, check_log, claim, every, heartbeat, open_session, run, transact
from tests.task_commands import (
    BASE,
    LEASE,
    beat,
    begin,
    close_session,
    complete,
    create,
    heartbeat_session,
    sweep,
    take,
    take_this,
    write,
)

TTL = 60


@pytest.fixture
def session_store(store):
    """A session that holds two tasks and a job."""
    run(store, begin())
    transact(store, create("t1"), create("t2"), create("t3"), take("work", limit=2, session_id="s1"))
    run(store, claim("job", "l1", session_id="s1", ttl=300 * SECOND))
    return store


def event_kinds(store, subject):
    return [event.kind for event in every(store, Event) if event.subject == subject]


def holders(store):
    """Proof and token of the two tasks that the session holds."""
    return [(task.proof, task.token) for task in every(store, Task)[:2]]


def the_session(store):
    (session,) = every(store, Session)
    return session


# -- ending ------------------------------------------------------------------------------------------------------


def test_closing_a_session_hands_its_tasks_back_uncounted_each_with_an_event(session_store):
    run(session_store, close_session())
    assert [(task.state, task.attempt, task.attempt_count) for task in every(session_store, Task)] == [
        (PENDING, 1, 0), (PENDING, 1, 0), (PENDING, 0, 0),
    ]  # fmt: skip
    for subject in ("task:t1", "task:t2"):
        assert event_kinds(session_store, subject) == ["task.created", "task.claimed", "task.released"]
    assert event_kinds(session_store, "lease:job") == ["lease.claimed", "lease.released"]
    assert event_kinds(session_store, "session:s1") == ["session.opened", "session.ended"]
    assert every(session_store, Lease)[0].proof is None
    check_log(session_store)


def test_an_expired_session_uses_an_attempt_of_its_tasks(session_store, clock):
    clock.advance(TTL)
    sweep(session_store)
    assert [(task.state, task.attempt_count) for task in every(session_store, Task)] == [
        (PENDING, 1),
        (PENDING, 1),
        (PENDING, 0),
    ]
    attempt = last_attempt(every(session_store, Task)[0])
    assert (attempt.outcome, attempt.reason) == ("expired", "session expired")
    assert event_kinds(session_store, "session:s1")[-1] == "session.expired"
    check_log(session_store)


def test_an_expired_session_makes_tasks_at_their_last_attempt_dead_letters(store, clock):
    run(store, begin())
    transact(store, create("t1", max_attempts=1), take("work", session_id="s1"))
    clock.advance(TTL)
    sweep(store)
    assert every(store, Task)[0].state == DEAD
    assert event_kinds(store, "task:t1")[-1] == "task.dead_lettered"


def test_tasks_of_an_expired_session_are_lost_before_the_sweep(session_store, clock):
    clock.advance(TTL)
    before = every(session_store, Task)
    for verb in (beat("t1"), complete("t1")):
        with pytest.raises(LeaseExpired):
            run(session_store, verb)
    assert every(session_store, Task) == before


def test_a_task_whose_lease_expired_lapses_however_its_session_ends(store, clock):
    """Whether an attempt counts must not depend on when the sweep ran."""
    run(store, begin(ttl=LEASE * 2))
    transact(store, create("t1"), take("work", session_id="s1"))
    clock.advance(LEASE // SECOND)
    run(store, close_session())
    assert (every(store, Task)[0].attempt_count, last_attempt(every(store, Task)[0]).outcome) == (1, "expired")


def test_an_expiry_ends_a_session_once_and_only_when_it_is_due(session_store, clock):
    clock.now = START + TTL * SECOND - 1
    assert run(session_store, ExpireSession(**BASE, session_id="s1")) is False
    clock.now += 1
    assert run(session_store, ExpireSession(**BASE, session_id="s1")) is True
    assert run(session_store, ExpireSession(**BASE, session_id="s1")) is False


# -- resuming ----------------------------------------------------------------------------------------------------


def test_resuming_reissues_all_holdings_with_larger_tokens(session_store, clock):
    before = {row.id: row for row in [*every(session_store, Task), *every(session_store, Lease)]}
    clock.advance(30)
    begun = run(session_store, begin(seed="life-2", secret="secret-life-1"))
    assert (begun.resumed, begun.secret, begun.session.generation) == (True, None, 2)
    assert [task.id for task in begun.tasks] == ["t1", "t2"]
    assert [job.id for job in begun.jobs] == ["job"]
    for row in (*begun.tasks, *begun.jobs):
        assert row.token > before[row.id].token
        assert row.proof != before[row.id].proof
        assert row.expires_at == begun.session.expires_at == clock.now + TTL * SECOND
    assert begun.session.token > 1
    assert {task.attempt for task in begun.tasks} == {1}
    assert [(task.proof, task.token) for task in begun.tasks] == holders(session_store)
    assert event_kinds(session_store, "task:t1")[-1] == "task.reissued"
    assert event_kinds(session_store, "session:s1") == ["session.opened", "session.resumed"]
    check_log(session_store)


def test_the_previous_generation_is_fenced_off_and_the_new_one_acts(session_store):
    begun = run(session_store, begin(seed="life-2", secret="secret-life-1"))
    before = every(session_store, Task)
    for verb in (beat("t1", "s1"), complete("t2", "s1")):
        with pytest.raises(LeaseSuperseded):
            run(session_store, verb)
    with pytest.raises(LeaseLost):
        run(session_store, heartbeat("job", "l1"))
    for verb in (heartbeat_session(), write(context=Context(turn=9)), close_session()):
        with pytest.raises(LeaseLost):
            run(session_store, verb)
    assert every(session_store, Task) == before
    held = [held_lease_id(begun.lease_id, row) for row in (begun.tasks[0], begun.jobs[0])]
    assert run(session_store, complete("t1", lease_id=held[0])).task.state == "completed"
    run(session_store, heartbeat("job", held[1]))
    run(session_store, heartbeat_session(lease_id=begun.lease_id))


def test_a_live_session_is_resumed_only_with_its_secret(session_store):
    for wrong in (begin(seed="2"), begin(seed="2", secret="guess"), begin(seed="2", secret="secret-life-1", by=BOB)):
        with pytest.raises(SessionTaken):
            run(session_store, wrong)
    assert the_session(session_store).generation == 1
    assert "secret-life-1" not in repr(every(session_store, Event)) + repr(the_session(session_store))


def test_an_ended_session_is_opened_again_with_its_context_and_a_new_secret(session_store, clock):
    run(session_store, write(context=Context(turn=3, next_action="test", context='{"a":1}')))
    clock.advance(TTL)
    begun = run(session_store, begin(seed="life-2"))
    assert (begun.resumed, begun.secret, begun.tasks, begun.jobs) == (True, "secret-life-2", (), ())
    assert (begun.session.turn, begun.session.context, begun.session.context_version) == (3, '{"a":1}', 1)
    assert event_kinds(session_store, "session:s1") == [
        "session.opened", "session.context", "session.expired", "session.resumed",
    ]  # fmt: skip
    assert every(session_store, Task)[0].state == PENDING
    with pytest.raises(SessionTaken):
        run(session_store, begin(seed="life-3", secret="secret-life-1"))
    assert run(session_store, begin(seed="life-3", secret="secret-life-2")).session.generation == 3
    check_log(session_store)


def test_resuming_does_not_restore_expired_holdings(store, clock):
    run(store, begin(ttl=3 * LEASE))
    transact(store, create("t1"), take("work", session_id="s1"), claim("job", "l1", session_id="s1", ttl=LEASE))
    clock.advance(LEASE // SECOND)
    begun = run(store, begin(seed="life-2", secret="secret-life-1", ttl=3 * LEASE))
    assert (begun.tasks, begun.jobs) == ((), ())
    assert every(store, Task)[0].state == PENDING
    assert every(store, Lease)[0].proof is None
    check_log(store)


# -- live sessions -----------------------------------------------------------------------------------------------


def test_a_heartbeat_of_a_session_renews_all_that_it_holds(session_store, clock):
    clock.advance(50)
    alive = run(session_store, heartbeat_session(context=Context(last_action="built")))
    assert alive.session.expires_at == clock.now + TTL * SECOND
    assert [row.expires_at for row in (*alive.tasks, *alive.jobs)] == [alive.session.expires_at] * 3
    assert [task.expires_at for task in every(session_store, Task)[:2]] == [clock.now + LEASE] * 2
    assert [job.expires_at for job in every(session_store, Lease)] == [clock.now + 300 * SECOND]
    assert (alive.session.last_action, alive.session.context_version) == ("built", 1)
    assert [(task.proof, task.token) for task in alive.tasks] == holders(session_store)
    assert event_kinds(session_store, "task:t1")[-1] == "task.renewed"
    check_log(session_store)


def test_a_heartbeat_of_a_session_does_not_renew_expired_holdings(store, clock):
    run(store, begin(ttl=3 * LEASE))
    transact(store, create("t1"), take("work", session_id="s1"))
    clock.advance(LEASE // SECOND)
    run(store, heartbeat_session())
    with pytest.raises(LeaseExpired):
        run(store, beat("t1"))


def test_a_session_at_its_deadline_is_over(session_store, clock):
    clock.now = START + TTL * SECOND - 1
    run(session_store, heartbeat_session())
    clock.advance(TTL)
    for verb in (heartbeat_session(), write(context=Context(turn=1)), close_session()):
        with pytest.raises(SessionExpired):
            run(session_store, verb)


@pytest.mark.parametrize("verb", [heartbeat_session, close_session])
def test_foreign_and_absent_sessions_get_the_same_refusal(session_store, verb):
    for command in (verb(by=BOB), verb("s2")):
        with pytest.raises(SessionMissing):
            run(session_store, command)


def test_a_context_is_written_only_with_the_version_that_was_read(session_store, clock):
    clock.advance(10)
    first = run(session_store, write(context=Context(turn=1, memory_ref="m"), if_version=0)).session
    assert (first.context_version, first.turn, first.memory_ref) == (1, 1, "m")
    assert first.expires_at == clock.now + TTL * SECOND
    with pytest.raises(ContextConflict) as caught:
        run(session_store, write(context=Context(turn=2), if_version=0))
    assert caught.value.facts == {"version": 1}
    second = run(session_store, write(context=Context(turn=2), if_version=1)).session
    assert (second.context_version, second.turn, second.memory_ref) == (2, 2, "m")
    check_log(session_store)


@pytest.mark.parametrize(
    ("by", "seconds", "refusal"),
    [(BOB, 0, SessionMissing), (ALICE, TTL, SessionExpired), (ALICE, TTL + 5, SessionMissing)],
)
def test_only_a_live_session_of_the_caller_can_claim_tasks(store, clock, by, seconds, refusal):
    run(store, begin())
    run(store, create("t1"))
    clock.advance(seconds)
    for command in (take("work", by=by, session_id="s1"), take_this("t1", by=by, session_id="s1")):
        with pytest.raises(refusal):
            run(store, command)
    assert every(store, Task)[0].state == PENDING


def test_ending_an_unnamed_session_also_hands_its_tasks_back(store):
    run(store, open_session("s1"))
    transact(store, create("t1"), take("work", session_id="s1"))
    run(store, EndSession(**BASE, by=ALICE, session_id="s1"))
    assert every(store, Task)[0].state == PENDING
    assert the_session(store).ended_how == sessions.DELETED
