"""Commands of jobs: only the lease id is proof; successors and former holders get how the lease ended."""

from __future__ import annotations

import pytest

from holdfast.core.acl import normalise
from holdfast.core.errors import Forbidden, LeaseLost, NotHeld, SessionExpired, SessionMissing, WrongToken
from holdfast.core.lease import EXPIRED, FORCED, RELEASED, UNDELIVERED, Lease
from holdfast.core.row import SECOND
from holdfast.engine.command import Held
from holdfast.engine.verbs.job_claims import Claimed
from holdfast.engine.verbs.jobs import ForceRelease
from holdfast.engine.verbs.locks import AcquireLock
from holdfast.engine.verbs.octostore_sessions import EndSession, KeepSessionAlive
from tests.support import (
    ACCOUNT,
    ALICE,
    BOB,
    CAUSE,
    START,
    a_lease,
    acquire,
    check_log,
    claim,
    every,
    heartbeat,
    open_session,
    put,
    release,
    run,
    transact,
)  # fmt: skip


def force(name="job"):
    return ForceRelease(account=ACCOUNT, cause=CAUSE, name=name, by="the admin", reason="stuck")


def test_the_owner_label_is_not_proof_of_the_holder(memory):
    run(memory, claim("job", "l1", owner="worker"))
    assert isinstance(run(memory, claim("job", "l2", owner="worker")), Held)
    with pytest.raises(LeaseLost):
        run(memory, release("job", "l2"))


def test_a_heartbeat_starts_the_ttl_again(memory, clock):
    run(memory, claim("job", "l1", ttl=10 * SECOND))
    clock.advance(9)
    assert run(memory, heartbeat("job", "l1")).lease.expires_at == START + 19 * SECOND
    assert run(memory, heartbeat("job", "l1", ttl=2 * SECOND)).lease.expires_at == START + 11 * SECOND


def test_a_heartbeat_at_the_deadline_is_too_late(memory, clock):
    run(memory, claim("job", "l1", ttl=10 * SECOND))
    clock.now = START + 10 * SECOND - 1
    run(memory, heartbeat("job", "l1", ttl=1))
    clock.now += 1
    with pytest.raises(LeaseLost):
        run(memory, heartbeat("job", "l1"))


def test_a_token_that_is_sent_must_match(memory):
    token = run(memory, claim("job", "l1")).lease.token
    run(memory, heartbeat("job", "l1", token=token))
    with pytest.raises(WrongToken):
        run(memory, heartbeat("job", "l1", token=token + 1))


def test_an_undelivered_grant_records_no_ending(memory):
    run(memory, claim("job", "l1", owner="first"))
    run(memory, release("job", "l1", note="for the next one"))
    run(memory, claim("job", "l2", owner="gone"))
    run(memory, release("job", "l2", how=UNDELIVERED))
    previous = run(memory, claim("job", "l3")).previous
    assert (previous.owner, previous.how, previous.note) == ("first", RELEASED, "for the next one")


def test_note_and_checkpoint_stay_when_later_owners_left_none(memory, clock):
    run(memory, claim("job", "l1", owner="first"))
    run(memory, heartbeat("job", "l1", note="step 4 next", checkpoint='{"step":4}'))
    for number in (2, 3):
        clock.advance(60)
        run(memory, claim("job", f"l{number}", owner=f"crasher-{number}"))
    clock.advance(60)
    claimed = run(memory, claim("job", "l4"))
    assert (claimed.previous.owner, claimed.previous.how) == ("crasher-3", EXPIRED)
    assert (claimed.previous.note, claimed.previous.context_from) == ("step 4 next", "first")
    assert claimed.previous_checkpoint == '{"step":4}'


@pytest.mark.parametrize("how", [RELEASED, EXPIRED, FORCED])
def test_a_successor_gets_how_the_last_lease_ended(memory, clock, how):
    run(memory, claim("job", "l1", owner="first"))
    run(memory, heartbeat("job", "l1", note="half way", checkpoint='{"n":1}', progress="0.5"))
    if how == EXPIRED:
        clock.advance(60)
    else:
        run(memory, force() if how == FORCED else release("job", "l1"))
    claimed = run(memory, claim("job", "l2"))
    assert (claimed.previous.owner, claimed.previous.how, claimed.previous.note) == ("first", how, "half way")
    assert claimed.previous_checkpoint == '{"n":1}'
    assert (claimed.lease.note, claimed.lease.checkpoint, claimed.lease.progress) == (None, None, None)


def test_an_evicted_holder_gets_by_whom_and_why(memory):
    run(memory, claim("job", "l1"))
    run(memory, force())
    with pytest.raises(LeaseLost) as caught:
        run(memory, heartbeat("job", "l1"))
    assert (caught.value.facts["ended_by"], caught.value.facts["reason"]) == ("the admin", "stuck")
    with pytest.raises(NotHeld):
        run(memory, force())


def test_a_late_holder_gets_the_new_owner_but_no_lease_id_or_token(memory, clock):
    run(memory, claim("job", "l1"))
    clock.advance(60)
    run(memory, claim("job", "secret-lease", owner="next"))
    with pytest.raises(LeaseLost) as caught:
        run(memory, release("job", "l1"))
    assert caught.value.facts["held_by"] == "next"
    refusal_text = repr(caught.value.facts) + caught.value.message
    row = every(memory, Lease)[0]
    assert not any(str(secret) in refusal_text for secret in ("secret-lease", row.proof, row.holder))
    assert "token" not in caught.value.facts


def test_ending_a_session_frees_its_jobs(memory, clock):
    run(memory, open_session("s1"))
    run(memory, claim("a", "l1", session_id="s1"))
    run(memory, acquire("b", session_id="s1", ephemeral=True))
    run(memory, acquire("c", session_id="s1"))
    run(memory, EndSession(account=ACCOUNT, cause=CAUSE, by=ALICE, session_id="s1"))
    assert {row.id: row.proof is not None for row in every(memory, Lease)} == {"a": False, "b": False, "c": True}
    with pytest.raises(LeaseLost):
        run(memory, heartbeat("a", "l1"))
    check_log(memory)


def test_a_job_of_an_expired_session_is_lost_before_the_sweep(memory, clock):
    run(memory, open_session("s1", ttl_seconds=10))
    run(memory, claim("a", "l1", session_id="s1", ttl=60 * SECOND))
    clock.advance(10)
    with pytest.raises(LeaseLost) as caught:
        run(memory, heartbeat("a", "l1"))
    assert caught.value.facts["ended"] == "session_ended"


@pytest.mark.parametrize(
    ("by", "seconds", "refusal"), [(BOB, 0, SessionMissing), (ALICE, 10, SessionExpired), (ALICE, 15, SessionMissing)]
)
def test_only_a_live_session_of_the_caller_can_claim(memory, clock, by, seconds, refusal):
    run(memory, open_session("s1", ttl_seconds=10))
    clock.advance(seconds)
    for command in (claim("a", by=by, session_id="s1"), acquire("a", by, session_id="s1", ephemeral=True)):
        with pytest.raises(refusal):
            run(memory, command)
    assert every(memory, Lease) == []


def test_a_session_that_is_kept_alive_keeps_its_jobs(memory, clock):
    run(memory, open_session("s1", ttl_seconds=10))
    run(memory, claim("a", "l1", session_id="s1", ttl=60 * SECOND))
    clock.advance(9)
    run(memory, KeepSessionAlive(account=ACCOUNT, cause=CAUSE, by=ALICE, session_id="s1"))
    clock.advance(9)
    run(memory, heartbeat("a", "l1"))


def test_an_access_list_refuses_other_claimers(memory):
    put(memory, a_lease("job", ends=None, acl=normalise(["user:bob"])))
    with pytest.raises(Forbidden):
        run(memory, claim("job", by=ALICE))
    assert isinstance(run(memory, claim("job", by=BOB)), Claimed)


def test_the_limit_of_locks_counts_those_of_the_same_batch(memory):
    outcomes = transact(memory, *(acquire(name, limit=2) for name in "abc"))
    assert [type(outcome).__name__ for outcome in outcomes] == ["Acquired", "Acquired", "LockLimit"]
    assert isinstance(acquire(), AcquireLock)
