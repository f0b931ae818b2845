"""Durability on PostgreSQL: every COMMIT waits for the disk, whatever the database's default is."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg
import pytest

from holdfast.core.browser_session import SESSION, BrowserSession
from holdfast.core.errors import OutcomeUnknown
from holdfast.store.postgres import PostgresStore
from tests.support import a_lease, put


def at_commit(name, statement):
    """Triggers that run a statement during COMMIT, for a batch and for housekeeping."""
    return f"""
    CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {statement}; RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER {name} AFTER INSERT ON leases DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION {name}();
    CREATE CONSTRAINT TRIGGER {name} AFTER INSERT ON badges DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION {name}();
    """


RECORD_COMMITS = "CREATE TABLE commits (what text, synchronous_commit text);" + at_commit(
    "record", "INSERT INTO commits VALUES (TG_TABLE_NAME, current_setting('synchronous_commit'))"
)
"""Record what each COMMIT will wait for."""
WARN_AT_COMMIT = at_commit(
    "warn", "RAISE WARNING 'storniere Warten auf synchrone Replikation wegen Benutzeraufforderung'"
)
"""Warn, as a PostgreSQL with German messages does if a wait for a standby is cancelled."""


@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "behind a pooler"])
@pytest.mark.parametrize(
    ("configured", "expected"),
    [("off", "on"), ("local", "on"), ("on", "on"), ("remote_write", "remote_write"), ("remote_apply", "remote_apply")],
)
def test_every_commit_waits_for_the_disk_and_no_stricter_setting_is_lowered(
    recording_database, configured, expected, pooled
):
    with administrator(recording_database) as admin:
        admin.execute("TRUNCATE commits, leases, badges")
        name = admin.info.dbname
        admin.execute(f"ALTER DATABASE {name} SET synchronous_commit = {configured}")
    store = PostgresStore(recording_database, pooled=pooled)
    try:
        put(store, a_lease("job"))
        store.save_browser_session(a_browser_session())
        with store.read() as reader:
            assert reader.value("SHOW synchronous_commit") == configured, "the session's own setting stays"
    finally:
        store.close()
    with administrator(recording_database) as admin:
        assert set(admin.execute("SELECT * FROM commits")) == {("leases", expected), ("badges", expected)}


@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "behind a pooler"])
@pytest.mark.parametrize("reported", ["notice", "error"])
def test_a_commit_with_a_warning_in_any_language_is_an_unknown_outcome(new_postgres_database, reported, pooled):
    url = new_postgres_database()
    with administrator(url) as admin:
        admin.execute(WARN_AT_COMMIT)
        admin.execute(f"ALTER DATABASE {admin.info.dbname} SET client_min_messages = {reported}")
    store = PostgresStore(url, pooled=pooled)
    try:
        with pytest.raises(OutcomeUnknown, match="no standby has confirmed it"):
            put(store, a_lease("job"))
        with pytest.raises(OutcomeUnknown, match="no standby has confirmed it"):
            store.save_browser_session(a_browser_session())
    finally:
        store.close()


def a_browser_session():
    return BrowserSession("id", SESSION, "default", "id-alice", "hash", 0, 0)


@pytest.fixture(scope="module")
def recording_database(new_postgres_database):
    url = new_postgres_database()
    with administrator(url) as admin:
        admin.execute(RECORD_COMMITS)
    return url


@contextmanager
def administrator(url):
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection
