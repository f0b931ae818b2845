"""A database that falls silent without closing its connections: every wait is bounded, and it is used again later."""

from __future__ import annotations

import pytest

from holdfast.core.errors import OutcomeUnknown, StoreUnavailable
from holdfast.core.lease import Lease
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.job_claims import Claimed
from holdfast.engine.verbs.jobs import Changed
from holdfast.store.postgres import PostgresStore, connection, durability, transaction, watcher
from tests.silent_proxy import SilentProxy
from tests.support import ACCOUNT, claim, every, heartbeat, stop_in_time, transact, wait_until

SHORT_SECONDS = 1.0
CONNECT_SECONDS = 2
"""The shortest time that libpq waits for a connection."""


@pytest.fixture
def proxy(postgres_store, database):
    """The database is empty: `postgres_store` reaches it without the proxy."""
    proxy = SilentProxy(database)
    yield proxy
    proxy.close()


@pytest.fixture
def store(proxy, monkeypatch):
    """A store behind the proxy that does not wait as long as usual."""
    monkeypatch.setattr(connection, "ANSWER_SECONDS", SHORT_SECONDS)
    for module in (transaction, durability):
        monkeypatch.setattr(module, "COMMIT_SECONDS", SHORT_SECONDS)
    store = PostgresStore(f"{proxy.url}&connect_timeout={CONNECT_SECONDS}")
    yield store
    store.close()


def test_a_read_fails_in_time_and_no_other_read_waits_for_the_same_silence(store, proxy):
    with store.read(), store.read():
        pass
    assert len(store._readers) == 2
    proxy.fall_silent()
    with pytest.raises(StoreUnavailable, match="does not answer"), store.read():
        pass
    assert store._readers == [], "the other idle connection is as silent"
    proxy.speak()
    with store.read() as reader:
        assert reader.counts(ACCOUNT).live_leases == 0


def test_a_batch_that_gets_no_answer_before_commit_is_not_applied(store, proxy, postgres_store):
    transact(store, claim("first", "l1"))
    proxy.fall_silent()
    with pytest.raises(StoreUnavailable, match="does not answer") as caught:
        transact(store, claim("second", "l2"))
    assert caught.value.applied == "no"
    proxy.speak()
    transact(store, claim("third", "l3"))
    assert [row.id for row in every(postgres_store, Lease)] == ["first", "third"]


def test_preparing_a_statement_has_the_same_bound(store, proxy):
    proxy.silent_at = b"json_array_elements"
    with pytest.raises(StoreUnavailable, match="does not answer"):
        transact(store, claim("first", "l1"))
    proxy.speak()
    transact(store, claim("first", "l1"))


def test_a_commit_that_gets_no_answer_is_unknown_and_never_cancelled(store, proxy, postgres_store):
    transact(store, claim("first", "l1"))
    proxy.silent_at = b"COMMIT\0"
    with pytest.raises(OutcomeUnknown):
        transact(store, claim("second", "l2"))
    wait_until(lambda: [row.id for row in every(postgres_store, Lease)] == ["first", "second"], seconds=10)
    proxy.speak()
    transact(store, claim("third", "l3"))


def test_a_housekeeping_commit_that_gets_no_answer_is_unknown(store, proxy):
    proxy.silent_at = b"COMMIT\0"
    with pytest.raises(OutcomeUnknown):
        store.beat()
    proxy.speak()
    store.beat()
    assert store.last_beat() is not None


@pytest.mark.waits(CONNECT_SECONDS)
def test_after_a_connection_attempt_timed_out_others_fail_at_once(store, proxy):
    proxy.fall_silent()
    for _ in range(5):
        with pytest.raises(StoreUnavailable), store.read():
            pass
    assert proxy.accepted == 1, "one attempt was made for all of them"


@pytest.mark.waits(8)
def test_an_engine_answers_its_callers_and_works_again_when_the_database_is_back(store, proxy, monkeypatch):
    monkeypatch.setattr(watcher, "CHECK_SECONDS", 0.2)
    engine = Engine(store, serving=True)
    engine.start()
    try:
        assert isinstance(engine.call(claim("job", "l1")), Claimed)
        proxy.fall_silent()
        for _ in range(4):  # twice for each lane
            with pytest.raises(StoreUnavailable):
                engine.call(heartbeat("job", "l1"))
        with pytest.raises(StoreUnavailable):
            engine.check_writable()
        proxy.speak()
        wait_until(lambda: isinstance(outcome_of(engine, heartbeat("job", "l1")), Changed), seconds=15)
        engine.check_writable()
        proxy.fall_silent()
    finally:
        stop_in_time(engine, 20)


def outcome_of(engine, command):
    try:
        return engine.call(command)
    except StoreUnavailable as error:
        return error
