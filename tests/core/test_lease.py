"""The rules of leases: grant, extension, ending, and the exact deadline."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core.errors import LeaseGone, LeaseMismatch
from holdfast.core.lease import EXPIRED, FORCED, JOB, LOCK, RELEASED, Claim, Lease, proof_of
from holdfast.core.row import SECOND
from tests.support import START, a_lease

NOW = START
CLAIM = Claim(
    kind=JOB, holder="h1", owner="worker", principal="p1", proof=proof_of("l1"), ttl=30 * SECOND,
    metadata='{"a":1}', session="s1", ephemeral=True, delay=5 * SECOND,
)  # fmt: skip
HELD = leases.grant(Lease("default", "job"), CLAIM, token=7, now=NOW)
MINE, THEIRS = proof_of("l1"), proof_of("l2")


@pytest.mark.parametrize(
    ("expires_at", "live", "due"),
    [(None, False, False), (NOW - 1, False, True), (NOW, False, True), (NOW + 1, True, False)],
)
def test_a_lease_is_over_at_its_deadline_and_not_a_microsecond_before(expires_at, live, due):
    lease = replace(HELD, expires_at=expires_at)
    assert leases.is_live(lease, NOW) is live
    assert leases.is_due(lease, NOW) is due


@given(expires_at=st.none() | st.integers(NOW - 3, NOW + 3), now=st.integers(NOW - 3, NOW + 3))
def test_a_lease_with_a_deadline_is_either_live_or_due(expires_at, now):
    lease = replace(HELD, expires_at=expires_at)
    assert leases.is_live(lease, now) + leases.is_due(lease, now) == (expires_at is not None)


def test_a_grant_starts_now_with_the_requested_values():
    assert (HELD.claimed_at, HELD.expires_at, HELD.token) == (NOW, NOW + 30 * SECOND, 7)
    for asked in ("kind", "holder", "owner", "principal", "proof", "ttl", "metadata", "session", "ephemeral", "delay"):
        assert getattr(HELD, asked) == getattr(CLAIM, asked)


def test_a_grant_ends_the_delay_and_keeps_the_access_list_and_last_ending():
    free = replace(
        Lease("default", "job"), available_at=NOW - 1, acl='["user:bob"]', ended='{"x":1}', ended_checkpoint="c"
    )
    granted = leases.grant(free, CLAIM, token=1, now=NOW)
    assert granted.available_at is None
    assert (granted.acl, granted.ended, granted.ended_checkpoint) == (free.acl, free.ended, free.ended_checkpoint)


@pytest.mark.parametrize("ttl", [1, 5 * SECOND, 90 * SECOND])
def test_an_extension_counts_from_now_and_may_shorten_the_lease(ttl):
    later = NOW + 10 * SECOND
    extended = leases.extend(HELD, ttl=ttl, now=later)
    assert (extended.expires_at, extended.ttl) == (later + ttl, ttl)
    assert replace(extended, ttl=HELD.ttl, expires_at=HELD.expires_at) == HELD


def test_an_ended_lease_keeps_only_the_record_of_its_ending():
    busy = replace(
        HELD, note="half way", checkpoint='{"n":2}', progress="0.5", acl='["user:bob"]', version=3, changed_at=9
    )
    free = leases.end(busy, FORCED, now=NOW + 9, by="admin", reason="stuck")
    blank = Lease(
        "default", "job", version=3, changed_at=9, token=7, acl=busy.acl, available_at=NOW + 9 + 5 * SECOND,
        ended=free.ended, ended_checkpoint='{"n":2}',
    )  # fmt: skip
    assert free == blank
    ending = leases.last_ending(free)
    assert ending is not None
    assert (ending.owner, ending.how, ending.at, ending.kind) == ("worker", FORCED, NOW + 9, JOB)
    assert (ending.proof, ending.claimed_at, ending.principal) == (MINE, NOW, "p1")
    assert (ending.note, ending.by, ending.reason) == ("half way", "admin", "stuck")


@pytest.mark.parametrize(("delay", "rests"), [(0, False), (SECOND, True)])
def test_a_name_is_delayed_only_if_its_holder_asked_for_it(delay, rests):
    free = leases.end(replace(HELD, delay=delay), RELEASED, now=NOW)
    assert leases.is_delayed(free, NOW) is rests
    assert leases.is_delayed(free, NOW + delay) is False
    assert leases.is_delayed(free, NOW + delay - 1) is rests


@pytest.mark.parametrize(
    ("lease", "proof", "now", "refusal"),
    [
        (HELD, MINE, NOW + 30 * SECOND - 1, None),
        (HELD, MINE, NOW + 30 * SECOND, LeaseGone),
        (HELD, THEIRS, NOW, LeaseMismatch),
        (HELD, THEIRS, NOW + 30 * SECOND, LeaseMismatch),
        (Lease("default", "job"), MINE, NOW, LeaseGone),
        (leases.end(HELD, RELEASED, now=NOW), MINE, NOW, LeaseGone),
    ],
    ids=["last moment", "expired", "another's", "another's, expired", "never claimed", "released"],
)
def test_only_the_newest_live_holder_may_act(lease, proof, now, refusal):
    if refusal is None:
        leases.check_holder(lease, proof, now)
    else:
        with pytest.raises(refusal) as caught:
            leases.check_holder(lease, proof, now)
        assert type(caught.value) is refusal


def test_a_former_holder_gets_the_new_owner_but_no_lease_id_or_token():
    successor = leases.grant(
        leases.end(HELD, FORCED, now=NOW + 1, by="admin", reason="stuck"),
        replace(CLAIM, owner="next", proof=THEIRS, holder="h2"), token=8, now=NOW + 2,
    )  # fmt: skip
    facts = leases.lease_lost_error(successor, MINE, NOW + 3).facts
    assert facts == {
        "job_id": "job", "ended": FORCED, "ended_at": NOW + 1, "ended_by": "admin", "reason": "stuck",
        "held_by": "next", "held_since": NOW + 2, "expires_at": NOW + 2 + 30 * SECOND,
    }  # fmt: skip


def test_a_holder_whose_lease_expired_before_the_sweep_gets_expired():
    facts = leases.lease_lost_error(HELD, MINE, NOW + 30 * SECOND).facts
    assert facts == {"job_id": "job", "ended": EXPIRED, "ended_at": NOW + 30 * SECOND}


def test_a_caller_that_never_held_a_free_name_learns_nothing_of_its_last_holder():
    assert leases.lease_lost_error(leases.end(HELD, RELEASED, now=NOW), THEIRS, NOW).facts == {"job_id": "job"}


def test_the_same_credential_makes_the_same_lease_id_again():
    assert leases.derive_lease_id(b"key", "a", "n", 1) == leases.derive_lease_id(b"key", "a", "n", 1)
    assert uuid.UUID(leases.derive_lease_id(b"key", "a", "n", 1)).version == 4


def test_a_derived_lease_id_depends_on_every_input():
    parts = [
        (b"key", "a", "n", 1),
        (b"kez", "a", "n", 1),
        (b"key", "b", "n", 1),
        (b"key", "a", "m", 1),
        (b"key", "a", "n", 2),
    ]
    assert len({leases.derive_lease_id(*given) for given in parts}) == len(parts)


@pytest.mark.parametrize(
    ("lease", "counts"),
    [
        (a_lease(kind=LOCK), True),
        (a_lease(kind=JOB), False),
        (a_lease(kind=LOCK, ends=NOW), False),
        (a_lease(ends=None), False),
    ],
)
def test_only_live_leases_of_a_kind_count_towards_its_limit(lease, counts):
    assert leases.counts_toward_limit(lease, LOCK, NOW) is counts


@pytest.mark.parametrize(("ttl", "pace"), [(120 * SECOND, 40 * SECOND), (SECOND, SECOND // 3), (1, SECOND // 3)])
def test_a_holder_should_renew_three_times_in_a_ttl(ttl, pace):
    assert leases.renewal_interval(ttl) == pace
