"""A copy killed with SIGKILL at any line leaves the old state or the complete copy; the next run completes it."""

import random

import msgspec
import psycopg
import pytest

from holdfast.backup.backup import backup
from holdfast.backup.migrate import migrate
from holdfast.backup.source import open_source
from holdfast.core.lease import Lease
from holdfast.engine.verify import verify
from holdfast.settings import sqlite_path
from holdfast.store.contract import NotAStore
from tests.backup.sample_store import assert_same, fill, no_report, opened
from tests.proof_size import sized
from tests.support import claim, every, run

KILLS = sized(2, 40)


def moments(lines, seed):
    """Random lines, the last ones more often: there files are renamed."""
    rng = random.Random(seed)
    return [rng.choice([rng.randint(1, lines), rng.randint(max(lines - 40, 1), lines)]) for _ in range(KILLS)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_backup_leaves_no_file_or_a_complete_one(kind, kill_runner, new_store_settings, tmp_path):
    source = fill(new_store_settings(kind), jobs=4)
    file = tmp_path / "b"
    _, lines, error = kill_runner.run("backup", source.store, file)
    assert error == ""
    file.unlink()
    for moment in moments(lines, 1):
        killed, _, error = kill_runner.run("backup", source.store, file, kill_at=moment)
        assert killed, error
        if file.exists():
            restored = new_store_settings("sqlite")
            assert kill_runner.run("restore", restored.store, file)[2] == ""
            file.unlink()
    header = backup(source, file, no_report)
    assert header.counts["tasks"] == 5
    assert not list(tmp_path.glob(".b*")), "temporary files of killed runs are removed"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_restore_leaves_the_old_store_or_the_complete_new_one(kind, kill_runner, new_store_settings, tmp_path):
    file, target = tmp_path / "b", fill(new_store_settings(kind), jobs=2)
    backup(fill(new_store_settings("sqlite"), jobs=6), file, no_report)
    with opened(target) as store:
        old = every(store, Lease)
    _, lines, error = kill_runner.run("restore", new_store_settings(kind).store, file)
    assert error == ""
    for moment in moments(lines, 2):
        killed, _, error = kill_runner.run("restore", target.store, file, replace=True, kill_at=moment)
        assert killed, error
        with opened(target) as store:
            assert verify(store).differences == []
            assert len(every(store, Lease)) in {len(old), 2 * 7}
    assert kill_runner.run("restore", target.store, file, replace=True)[2] == ""
    with opened(target) as store:
        assert len(every(store, Lease)) == 2 * 7
    assert not list(tmp_path.glob(".*.partial*"))


def test_a_killed_migration_is_not_served_and_continues_where_it_stopped(kill_runner, new_store_settings):
    source = fill(new_store_settings("sqlite"), jobs=20)
    _, lines, error = kill_runner.run("migrate", source.store, new_store_settings("postgres").store)
    assert error == ""
    target = new_store_settings("postgres")
    so_far = []
    for moment in [lines // 2, *moments(lines // 2, 3)]:
        killed, _, error = kill_runner.run("migrate", source.store, target.store, kill_at=moment)
        assert killed or error == ""
        so_far.append(progress(target))
        if so_far[-1] is None and len(so_far) > 1:
            break  # the rest took fewer lines
    assert_progress(so_far)
    if so_far[-1] is not None:
        with pytest.raises(NotAStore, match="holdfast migrate"), opened(target):
            pass
        migrate(source, target, no_report)
    assert_same(source, target)


def progress(target):
    """How many records a killed run has copied; None if there is no marker."""
    with psycopg.connect(target.store) as connection:
        tables = {name for (name,) in connection.execute("SELECT tablename FROM pg_tables")}
        if "unfinished_copy" not in tables:
            return None
        return msgspec.json.decode(connection.execute("SELECT place FROM unfinished_copy").fetchone()[0])["done"]


def assert_progress(so_far):
    known = [done for done in so_far if done is not None]
    assert known == sorted(known), "no run begins again"
    assert known, "some run was killed between its pages"
    assert known[0] > 0


def test_a_source_that_has_changed_is_copied_from_the_beginning(kill_runner, new_store_settings):
    source, target = fill(new_store_settings("sqlite")), new_store_settings("postgres")
    _, lines, _ = kill_runner.run("migrate", source.store, new_store_settings("postgres").store)
    assert kill_runner.run("migrate", source.store, target.store, kill_at=lines * 2 // 3)[0]
    assert progress(target)
    with opened(source) as store:
        run(store, claim("later", "ll"))
    migrate(source, target, no_report)
    assert_same(source, target)
    assert sqlite_path(source.store).exists()
    with open_source(target) as copied:
        assert "unfinished_copy" not in copied.endpoint.tables
