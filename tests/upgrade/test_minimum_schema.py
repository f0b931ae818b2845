"""A server goes on with a store that a newer one has upgraded, unless that raised the store's minimum schema."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import apsw
import psycopg
import pytest

from holdfast.app import make_store
from holdfast.core.browser_session import BrowserSession
from holdfast.core.budget import Terms
from holdfast.core.errors import ServerOutdated
from holdfast.core.row import SECOND
from holdfast.core.webhooks.delivery import Delivery
from holdfast.engine.engine import Engine
from holdfast.settings import Settings, sqlite_path
from holdfast.store.contract import NewerSchema
from tests.http.in_process_app import VARIABLES, InProcessApp, load
from tests.support import ACCOUNT, check_log, claim, heartbeat, once, run, stop_in_time, wait_until
from tests.task_commands import create
from tests.upgrade.newer_holdfast import ADDING, NEWER_SCHEMA, RAISING, upgrade

REASON = f"the store needs a Holdfast that knows schema {NEWER_SCHEMA}"


@contextmanager
def opened(address):
    store = make_store(Settings(store=address))
    store.open()
    try:
        yield store
    finally:
        store.close()


def prepare(store):
    """Make what the writes need."""
    run(store, claim("job"))
    run(store, create("t1", unique_key="unique"))


def writes(store):
    """Every kind of write, by its name."""
    now = SECOND
    browser_session = BrowserSession("s", "session", ACCOUNT, "p", "k", now, now)
    return {
        "batch": lambda: run(store, claim("another")),
        "answer without events": lambda: run(store, create("t2", unique_key="unique", once=once())),
        "renewal": lambda: run(store, heartbeat("job")),
        "heartbeat": store.beat,
        "outage": lambda: store.close_outage(now),
        "log": lambda: store.forget_events(ACCOUNT, 0),
        "budget": lambda: store.borrow("key", "job", Terms(10, SECOND)),
        "key uses": lambda: store.save_key_uses({(ACCOUNT, "key"): now}),
        "browser session": lambda: store.save_browser_session(browser_session),
        "answers": lambda: store.forget_answers(0),
        "sign-in": lambda: store.take_browser_session("s"),
        "delivery": lambda: store.deliveries.add(Delivery(ACCOUNT, "hook", 1, "job:a", "kind", "{}", now)),
    }


def test_a_server_goes_on_with_a_newer_schema_that_only_adds(address):
    with opened(address) as running:
        prepare(running)
        upgrade(address, ADDING)
        run(running, heartbeat("job"))
        running.check_minimum_schema()
        with opened(address) as started_later:
            for write in writes(started_later).values():
                write()
        check_log(running)


def test_no_write_of_a_running_server_succeeds_after_the_minimum_was_raised(upgraded_stores):
    _, running = upgraded_stores
    for name, write in writes(running).items():
        with pytest.raises(ServerOutdated, match=REASON):
            pytest.fail(f"{name}: {write()}")
    with pytest.raises(ServerOutdated, match=REASON):
        running.check_minimum_schema()


def test_a_store_with_a_higher_minimum_is_not_opened_and_not_changed(upgraded_stores):
    address, _ = upgraded_stores
    with pytest.raises(NewerSchema, match=f"needs at least {NEWER_SCHEMA}, this Holdfast knows {NEWER_SCHEMA - 1}"):
        make_store(Settings(store=address)).open()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def upgraded_stores(request, tmp_path_factory):
    """The address of a store with a raised minimum, and a store object that was opened before."""
    if request.param == "sqlite":
        address = f"sqlite:///{tmp_path_factory.mktemp('upgraded')}/new.db"
    else:
        address = request.getfixturevalue("new_empty_postgres_database")()
    with ExitStack() as stack:
        running = stack.enter_context(opened(address))
        prepare(running)
        upgrade(address, RAISING)
        yield address, running


def test_writers_that_do_not_know_the_rule_are_refused(upgraded_stores):
    """Commit 56d5e9c writes like this: no setting on PostgreSQL, a function without arguments on SQLite."""
    address, _ = upgraded_stores
    if address.startswith("postgresql:"):
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in (
                "UPDATE state SET clean = true",
                "DELETE FROM events",
                "INSERT INTO event_counters VALUES ('a', 1)",
            ):
                with pytest.raises(psycopg.Error, match=REASON) as refused:
                    connection.execute(statement)
                assert refused.value.sqlstate == "HF001"
    else:
        connection = apsw.Connection(str(sqlite_path(address)))
        connection.create_scalar_function("holdfast_writer", lambda *_: None, 0)
        with pytest.raises(apsw.SQLError, match="wrong number of arguments"):
            connection.execute("UPDATE state SET clean = 1")
        connection.close()


def test_an_engine_notices_without_writing_and_refuses_reads_and_writes(address):
    with opened(address) as store:
        engine = Engine(store, serving=True)
        engine.start()
        try:
            engine.call(claim("job"))
            upgrade(address, RAISING)
            wait_until(lambda: engine.outdated is not None)
            for call in (lambda: engine.call(heartbeat("job")), lambda: engine.read(lambda reader: reader.now)):
                with pytest.raises(ServerOutdated, match=REASON):
                    call()
        finally:
            stop_in_time(engine)


def test_an_outdated_server_answers_503_with_the_reason(tmp_path):
    address = f"sqlite:///{tmp_path}/new.db"
    settings, _ = load({"store": address}, VARIABLES)
    with opened(address) as store:
        app = InProcessApp(settings, store)
        try:
            assert app.ask("/readyz").status == 200
            upgrade(address, RAISING)
            wait_until(lambda: app.engine.outdated is not None)
            ready = app.ask("/readyz")
            assert (ready.status, ready.json["reason"]) == (503, "server_outdated")
            assert REASON in ready.json["message"]
            key = {"Authorization": f"Bearer {VARIABLES['HOLDFAST_ROOT_KEY']}", "Content-Type": "application/json"}
            lines = [(name.lower().encode(), value.encode()) for name, value in key.items()]
            refused = app.send("/v1/jobs/a/claim", lines, "127.0.0.1", method="POST", body=b'{"owner": "me"}')
            assert (refused.status, refused.json["error"], refused.json["applied"]) == (503, "server_outdated", "no")
            assert refused.json["message"] == ServerOutdated.hint
        finally:
            app.close()
