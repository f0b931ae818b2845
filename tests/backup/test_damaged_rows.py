"""A backup with damaged rows is checked like any other, and can be restored into both databases."""

from contextlib import closing
from pathlib import Path

import pytest

from holdfast.backup.backup import backup
from holdfast.backup.endpoint import CopyRefused
from holdfast.backup.migrate import migrate
from holdfast.backup.restore import restore
from holdfast.core.session import Session
from holdfast.core.task import PENDING, Task
from holdfast.engine.verify import verify
from holdfast.store.sqlite.store import connect
from tests.backup.sample_store import no_report, opened
from tests.damaged_records import BLOB, NOT_UTF8, SESSIONS, fill, without_rules, write
from tests.support import ACCOUNT, every

KINDS = ["sqlite", "postgres"]
ADDRESS = "UPDATE webhooks SET url = 'https://example.com/{}' WHERE id = 'good-webhooks'"
WITHOUT_PRINCIPAL = f"UPDATE sessions SET principal = NULL WHERE id = '{SESSIONS['bad']}'"
"""A session that a backup of PostgreSQL leaves out; a backup of a file has it."""


@pytest.fixture
def damaged_store(new_store_settings):
    """Call it with a kind of store and statements that damage it: the settings of a store with good and bad records."""

    def make(kind, *damages):
        settings = new_store_settings(kind)
        with opened(settings) as store:
            fill(store)
            with without_rules(store):
                for statement in damages:
                    write(store, statement)
        return settings

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_row_hides_no_difference_of_another_row(kind, damaged_store, new_store_settings, tmp_path):
    source, file = damaged_store(kind, WITHOUT_PRINCIPAL, ADDRESS.format("y")), Path(tmp_path / "backup")
    with pytest.raises(CopyRefused, match="webhook:good-webhooks: url differ"):
        backup(source, file, no_report)
    with opened(source) as store:
        write(store, ADDRESS.format("x"))
    assert backup(source, file, no_report).damaged
    done = restore(new_store_settings("sqlite"), file, no_report)
    assert any(SESSIONS["bad"] in line for line in done.damaged)
    with closing(connect(file)) as connection:
        connection.execute(ADDRESS.format("y"))
    with pytest.raises(CopyRefused, match="webhook:good-webhooks: url differ"):
        restore(new_store_settings("sqlite"), file, no_report)


@pytest.mark.parametrize("lost", ["tasks", "events", "last event"])
def test_what_is_missing_with_a_left_out_row_is_listed_and_no_error(lost, damaged_store, new_store_settings, tmp_path):
    """The counts of tasks are wrong without a task, and a row differs from its log without one of its events."""
    where = {
        "tasks": "tasks SET type = NULL WHERE id = 'bad-tasks'",
        "events": "events SET kind = NULL WHERE subject = 'task:bad-tasks' AND version = 1",
        "last event": "events SET kind = NULL WHERE seq = (SELECT max(seq) FROM events)",
    }[lost]
    source, file = damaged_store("postgres", f"UPDATE {where}"), Path(tmp_path / "backup")
    header = backup(source, file, no_report)
    left_out = [line for line in header.damaged if "it cannot be copied" in line]
    assert len(left_out) == 1
    done = restore(new_store_settings("sqlite"), file, no_report)
    assert set(done.damaged) > set(left_out)


@pytest.mark.parametrize("kind", KINDS)
def test_postgres_gets_all_rows_of_a_backup_but_those_that_it_refuses(
    kind, damaged_store, new_store_settings, tmp_path
):
    damages = [WITHOUT_PRINCIPAL, "UPDATE leases SET metadata = '{' WHERE id = 'bad-leases'"]
    refused = {f"sessions {ACCOUNT} {SESSIONS['bad']}"}
    if kind == "sqlite":
        damages += [
            f"UPDATE tasks SET note = {NOT_UTF8} WHERE id = 'bad-tasks'",
            f"UPDATE principals SET name = {BLOB} WHERE id = 'bad-principals'",
        ]
        refused |= {f"tasks {ACCOUNT} bad-tasks", f"principals {ACCOUNT} bad-principals"}
    source, file = damaged_store(kind, *damages), Path(tmp_path / "backup")
    backup(source, file, no_report)
    target = new_store_settings("postgres")
    done = restore(target, file, no_report)
    assert {line.partition(": ")[0] for line in done.damaged if "it cannot be copied" in line} == refused
    with opened(target) as store:
        assert [row.id for row in every(store, Session)] == [SESSIONS["good"]]
        assert {row.state for row in every(store, Task) if row.id == "good-tasks"} == {PENDING}
        found = verify(store)
    assert [line.partition(": ")[0] for line in found.damaged] == [f"leases {ACCOUNT} bad-leases"]
    missing = {line.split(":")[1] for line in found.differences if "by the log it exists" in line}
    assert missing == {line.split()[2] for line in refused}


def test_a_migration_names_the_rows_that_postgres_refuses(damaged_store, new_store_settings):
    source = damaged_store("sqlite", WITHOUT_PRINCIPAL)
    with pytest.raises(CopyRefused, match=f"sessions {ACCOUNT} {SESSIONS['bad']}: it cannot be copied"):
        migrate(source, new_store_settings("postgres"), no_report)
