"""A caller that waits is served only while its key works, and one account leaves waiting places to others."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from holdfast.core.acl import hash_token
from holdfast.core.errors import TooManyWaiters, UnknownKey
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.engine.ticket import CallerKey
from holdfast.engine.verbs.accounts import CloseAccount
from holdfast.engine.verbs.job_claims import Claimed
from holdfast.engine.verbs.keys import RevokeKey, RotateKey
from holdfast.engine.verbs.reservation_claims import Reserved
from holdfast.engine.verbs.tasks.claiming import Claimed as ClaimedTasks
from holdfast.engine.waiting import waiters
from tests.reservation_commands import release_paths, reserve
from tests.support import CAUSE, STORES, Futures, claim, put, release, wait_until
from tests.task_commands import create, take

TENANT = "acct_waiting"
KEY = Principal(TENANT, "k1", name="worker", key_hash=hash_token("the key"), scopes="jobs tasks")
OTHER = Principal(TENANT, "k2", name="admin", key_hash=hash_token("another key"), scopes="admin jobs tasks")


@pytest.fixture(params=STORES)
def engine(request, lasting):
    engine = lasting(request.param)
    put(engine.store, KEY, OTHER, kind="created")
    return engine


def start(engine, command, key=KEY):
    """Start a caller that waits with a key; returns its reply."""
    future: Future = Future()
    before = waiting(engine)
    engine.submit(command, Futures(), future, 20.0, CallerKey(TENANT, key.id, key.key_hash))
    wait_until(lambda: waiting(engine) == before + 1)
    return future


def waiting(engine):
    each = (engine.name_waiters, engine.task_waiters, engine.reservation_waiters)
    return sum(waiters.size(TENANT) for waiters in each)


def revoke(key=KEY):
    return RevokeKey(account=TENANT, cause=CAUSE, by=OTHER, by_hash="", key_id=key.id, others=(OTHER.id,))


def rotate(key=KEY, grace=0):
    return RotateKey(account=TENANT, cause=CAUSE, by=OTHER, by_hash="", key_id=key.id, key_hash=hash_token("the new"),
                     shown="", grace=grace)  # fmt: skip


def owner(engine, name="job"):
    return engine.read(lambda reader: reader.row(Lease, TENANT, name)).proof


def test_a_waiting_claim_is_refused_if_its_key_was_revoked_and_the_next_one_is_served(engine):
    engine.call(claim("job", "l0", account=TENANT))
    revoked, other = (
        start(engine, claim("job", "l1", account=TENANT)),
        start(engine, claim("job", "l2", account=TENANT), OTHER),
    )
    engine.call(revoke())  # as if another server had done it: nobody tells this engine
    engine.call(release("job", "l0", account=TENANT))
    with pytest.raises(UnknownKey):
        revoked.result(10)
    assert isinstance(other.result(10), Claimed)


def test_a_claim_that_waits_for_a_task_is_refused_if_its_key_was_rotated_away_and_the_task_goes_to_another(engine):
    old = start(engine, take("work", account=TENANT))
    other = start(engine, take("work", seed="s2", account=TENANT), OTHER)
    engine.call(rotate())
    engine.call(create("t1", type="work", account=TENANT))
    with pytest.raises(UnknownKey):
        old.result(10)
    assert isinstance(other.result(10), ClaimedTasks)


def wait_for_files(name):
    return reserve(name, "src/", account=TENANT, may_wait=True)


def test_a_reservation_that_waits_is_refused_if_its_key_was_revoked_and_the_next_one_is_served(engine):
    engine.call(reserve("r0", "src/", account=TENANT))
    revoked, other = start(engine, wait_for_files("r1")), start(engine, wait_for_files("r2"), OTHER)
    engine.call(revoke())
    engine.call(release_paths("r0", account=TENANT))
    with pytest.raises(UnknownKey):
        revoked.result(10)
    assert isinstance(other.result(10), Reserved)


def test_revoking_a_key_gives_up_its_place_in_the_line_for_files(engine):
    engine.call(reserve("r0", "docs/", "src/a", account=TENANT))
    revoked = start(engine, wait_for_files("r1"))
    other = start(engine, reserve("r2", "src/b", account=TENANT, may_wait=True), OTHER)
    changed = engine.call(revoke())
    engine.end_waits(changed.key, changed.now)
    with pytest.raises(UnknownKey):
        revoked.result(10)
    assert isinstance(other.result(4), Reserved)


def test_a_reservation_that_waits_in_a_deleted_account_leaves_nothing_behind(engine):
    engine.call(reserve("r0", "src/", account=TENANT))
    future = start(engine, wait_for_files("r1"))
    engine.call(CloseAccount(account=TENANT, cause=CAUSE, keys=(KEY.id, OTHER.id), by=OTHER, by_hash=""))
    engine.store.erase(TENANT)
    engine.reservation_waiters.wake_all()
    with pytest.raises(UnknownKey):
        future.result(10)
    wait_until(lambda: engine._backlog.size() == 0)
    with engine.store.read() as reader:
        assert reader.reservations(TENANT, None, ("", ""), 5) == []
        assert reader.log_bounds(TENANT) == (0, 0)
    assert isinstance(engine.call(reserve("r3", "src/", account=TENANT)), Reserved)


def test_revoking_a_key_ends_its_waits_at_once_and_no_others(engine):
    engine.call(claim("job", "l0", account=TENANT))
    futures = [start(engine, claim("job", "l1", account=TENANT)), start(engine, take("work", account=TENANT))]
    other = start(engine, claim("job", "l2", account=TENANT), OTHER)
    changed = engine.call(revoke())
    engine.end_waits(changed.key, changed.now)
    for future in futures:
        with pytest.raises(UnknownKey):
            future.result(10)
    assert not other.done()
    engine.call(release("job", "l0", account=TENANT))
    assert isinstance(other.result(10), Claimed)


def test_a_rotated_key_keeps_its_waits_during_the_grace_period(engine):
    engine.call(claim("job", "l0", account=TENANT))
    future = start(engine, claim("job", "l1", account=TENANT))
    changed = engine.call(rotate(grace=60_000_000))
    engine.end_waits(changed.key, changed.now)
    engine.call(release("job", "l0", account=TENANT))
    assert isinstance(future.result(10), Claimed)


def test_a_claim_that_waits_in_a_deleted_account_is_refused_and_leaves_nothing_behind(engine):
    engine.call(claim("job", "l0", account=TENANT))
    futures = [start(engine, claim("job", "l1", account=TENANT)), start(engine, take("work", account=TENANT))]
    engine.call(CloseAccount(account=TENANT, cause=CAUSE, keys=(KEY.id, OTHER.id), by=OTHER, by_hash=""))
    engine.store.erase(TENANT)
    engine.name_waiters.wake_all()
    engine.task_waiters.probe()
    for future in futures:
        with pytest.raises(UnknownKey):
            future.result(10)
    with engine.store.read() as reader:
        assert reader.row(Lease, TENANT, "job") is None
        assert reader.log_bounds(TENANT) == (0, 0)


def claim_name(number, account):
    return claim(f"job-{number}", f"w{number}", account=account)


def claim_work(number, account):
    return take(f"work-{number}", seed=f"w{number}", account=account)


@pytest.mark.parametrize("make", [claim_name, claim_work], ids=["names", "tasks"])
def test_one_account_cannot_take_every_waiting_place(lasting, monkeypatch, make):
    monkeypatch.setattr(waiters, "MAX_WAITERS", 4)
    monkeypatch.setattr(waiters, "MAX_OF_ACCOUNT", 2)
    engine = lasting("memory")
    tickets = []

    def wait(number, account):
        engine.call(claim(f"job-{number}", f"h{number}", account=account))
        future: Future = Future()
        tickets.append(engine.submit(make(number, account), Futures(), future, 20.0))
        return future

    greedy = [wait(number, "acct_greedy") for number in range(3)]
    with pytest.raises(TooManyWaiters, match="of your account"):
        greedy[2].result(10)
    others = [wait(number, "acct_other") for number in range(3, 5)]
    with pytest.raises(TooManyWaiters, match="already wait on this server"):
        wait(5, "acct_third").result(10)
    assert not [future for future in (*greedy[:2], *others) if future.done()]
    for ticket in tickets:
        engine.leave(ticket)
