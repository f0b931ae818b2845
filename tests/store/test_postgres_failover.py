"""PostgreSQL with a synchronous standby: what was acknowledged survives a failover, and nothing else is acknowledged.

The drill with a whole cluster is `scripts/failover-drill`.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from holdfast.core.browser_session import SESSION, BrowserSession
from holdfast.core.errors import OutcomeUnknown, StoreUnavailable, Trouble
from holdfast.engine.view import View
from holdfast.store.contract import NotDurable, StaleConnection
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.postgres import PostgresStore
from tests.compat.octostore.expect import eventually
from tests.postgres import Postgres
from tests.support import a_lease, put

STANDBYS = "synchronous_standby_names"


@pytest.fixture(scope="module")
def primary():
    postgres = Postgres()
    yield postgres
    postgres.remove()


@pytest.fixture
def standby(primary):
    postgres = Postgres(standby_of=primary)
    yield postgres
    postgres.remove()


@contextmanager
def opened(url, **options):
    store = PostgresStore(url, **options)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def waiting_for_standbys(primary, names):
    """Let every COMMIT wait for standbys with these names."""
    primary.configure(STANDBYS, names)
    try:
        yield
    finally:
        primary.configure(STANDBYS, "")


class Writer(threading.Thread):
    """Writes one lease after the other, each with a token, and records what was acknowledged."""

    def __init__(self, store):
        super().__init__()
        self.store = store
        self.acknowledged = {}
        self.refused = {}
        self.stopped = threading.Event()

    def run(self):
        number = 0
        while not self.stopped.is_set():
            number += 1
            name = f"job-{number}"
            try:
                self.acknowledged[name] = write_with_token(self.store, name)
            except StaleConnection:  # nothing was sent: the engine tries again on a new connection
                continue
            except Trouble as error:
                self.refused[name] = error
                time.sleep(0.02)


def write_with_token(store, name):
    """A grant in one transaction, as the engine makes it."""
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(rows=(a_lease(name).key,))])))
        (token,) = transaction.draw(1)
        view.put(a_lease(name, token=token), "claimed")
        view.keep()
        transaction.save(view.changes([]))
    return token


def test_nothing_acknowledged_is_lost_when_a_synchronous_standby_takes_over(primary, standby):
    name = conninfo_to_dict(primary.new_database())["dbname"]
    both = f"postgresql://postgres@/{name}?host={primary.home},{standby.home}"
    with waiting_for_standbys(primary, "*"), opened(both) as store:
        store.open()
        writer = Writer(store)
        writer.start()
        try:
            eventually(lambda: len(writer.acknowledged), lambda count: count >= 30, within=20)
            primary.kill()
            eventually(lambda: len(writer.refused), lambda count: count >= 3, within=20)
            before = dict(writer.acknowledged)
            standby.promote()
            eventually(lambda: len(writer.acknowledged), lambda count: count >= len(before) + 10, within=20)
        finally:
            writer.stopped.set()
            writer.join()
            primary.start()
    with psycopg.connect(standby.url(name)) as connection:
        kept = dict(connection.execute("SELECT id, token FROM leases").fetchall())
    assert kept.items() >= writer.acknowledged.items()
    assert not {lost for lost, error in writer.refused.items() if isinstance(error, StoreUnavailable)} & kept.keys()
    tokens = list(writer.acknowledged.values())
    assert tokens == sorted(set(tokens)), "tokens grow and are not reused"


@pytest.mark.parametrize("change", ["batch", "housekeeping"])
def test_a_cancelled_wait_for_a_standby_is_an_unknown_outcome(primary, change):
    url = primary.new_database()
    with opened(url) as store:
        store.open()
        with waiting_for_standbys(primary, "absent"), cancelled_commits(primary), pytest.raises(OutcomeUnknown):
            for number in range(500):  # PostgreSQL's processes read the setting a moment later
                if change == "batch":
                    put(store, a_lease(f"job-{number}"))
                else:
                    session = BrowserSession(f"id-{number}", SESSION, "default", "id-alice", "hash", 0, 0)
                    store.save_browser_session(session)


@contextmanager
def cancelled_commits(primary):
    """Cancel each COMMIT that waits for a standby, as an impatient administrator does."""
    done = threading.Event()

    def cancel():
        with psycopg.connect(primary.url("postgres"), autocommit=True) as connection:
            while not done.wait(0.05):
                connection.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_database_without_a_standby_is_refused_if_one_is_required(primary):
    url = primary.new_database()
    with opened(url) as careless, opened(url, require_standby=True) as store:
        with pytest.raises(NotDurable, match=f"empty {STANDBYS}"):
            store.open()
        careless.open()
        put(careless, a_lease("acknowledged"))
        with pytest.raises(OutcomeUnknown, match="no standby has confirmed it"):
            put(store, a_lease("not acknowledged"))
        with pytest.raises(NotDurable, match=f"empty {STANDBYS}"):
            store.check_durable()
        with waiting_for_standbys(primary, "absent"):
            eventually(lambda: shown(primary), lambda names: names == "absent", within=10)
            store.check_durable()


def shown(primary):
    with psycopg.connect(primary.url("postgres")) as connection:
        return connection.execute(f"SHOW {STANDBYS}").fetchone()[0]
