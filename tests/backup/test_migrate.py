"""A migrated store has exactly the records of its source, and continues its counters."""

import psycopg
import pytest
from psycopg.errors import LockNotAvailable

import holdfast
from holdfast.backup import postgres_source
from holdfast.backup.endpoint import CopyRefused
from holdfast.backup.migrate import migrate
from holdfast.engine.verify import verify
from tests.backup.sample_store import assert_same, fill, newest_token, no_report, opened
from tests.support import claim, run


@pytest.mark.parametrize(("here", "there"), [("sqlite", "postgres"), ("postgres", "sqlite"), ("sqlite", "sqlite")])
def test_a_migrated_store_has_the_same_rows_and_continues_its_counters(here, there, new_store_settings):
    source, target = fill(new_store_settings(here)), new_store_settings(there)
    counts = migrate(source, target, no_report)
    assert counts == assert_same(source, target)
    before = newest_token(source)
    with opened(target) as store:
        assert verify(store).differences == []
        assert run(store, claim("next", "ln")).lease.token == before + 1


def export(settings, account_key=None):
    """Everything, page by page, as the HTTP route gives it."""
    client, records, cursor = holdfast.open(settings.store), [], None
    try:
        while True:
            page = client.call("export_account", limit=7, **({"cursor": cursor} if cursor else {}))
            records += page["records"]
            cursor = page["nextCursor"]
            if cursor is None:
                return records
    finally:
        client.close()


def test_a_migrated_store_has_the_same_export(new_store_settings):
    source, target = fill(new_store_settings("sqlite")), new_store_settings("postgres")
    before = export(source)
    migrate(source, target, no_report)
    after = export(target)
    assert after == before
    assert len(before) > 20


@pytest.mark.parametrize(("here", "there"), [("sqlite", "postgres"), ("postgres", "sqlite")])
def test_a_store_that_is_in_use_is_not_migrated(here, there, new_store_settings):
    source = fill(new_store_settings(here))
    client = holdfast.open(source.store)
    try:
        client.claim_job("mine", "me")
        with pytest.raises(CopyRefused, match="in use"):
            migrate(source, new_store_settings(there), no_report)
    finally:
        client.close()


def test_a_database_that_is_not_empty_is_refused(new_store_settings):
    target = fill(new_store_settings("postgres"))
    with pytest.raises(CopyRefused, match="already holds a store"):
        migrate(fill(new_store_settings("sqlite")), target, no_report)
    with opened(target) as store:
        assert verify(store).differences == []


def test_a_migration_between_two_postgresql_databases_is_refused(new_store_settings):
    with pytest.raises(CopyRefused, match="pg_dump"):
        migrate(fill(new_store_settings("postgres")), new_store_settings("postgres"), no_report)


def test_nothing_is_committed_between_the_snapshot_of_a_migration_and_its_lock_on_the_log(
    new_store_settings, monkeypatch
):
    """The copy would lack what a server commits between the two, if the server stops before it is looked for."""
    source, target = fill(new_store_settings("postgres")), new_store_settings("sqlite")
    check, seen = postgres_source.check_schema, []

    def write_then_check(*schema):  # the source has read something: it has its snapshot
        with psycopg.connect(source.store) as server, pytest.raises(LockNotAvailable) as refused:
            server.execute("LOCK TABLE event_counters IN ROW EXCLUSIVE MODE NOWAIT")  # as every writer does
        seen.append(refused)
        check(*schema)

    monkeypatch.setattr(postgres_source, "check_schema", write_then_check)
    migrate(source, target, no_report)
    monkeypatch.undo()
    assert seen
    assert_same(source, target)
