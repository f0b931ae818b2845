"""SIGKILL at any line of a copy: what is there afterwards is what was there before, or all of it; then it goes on."""

import random

import msgspec
import psycopg
import pytest

from holdfast.backup.backup import backup
from holdfast.backup.migrate import migrate
from holdfast.backup.source import source_of
from holdfast.core.lease import Lease
from holdfast.engine.verify import verify
from holdfast.settings import sqlite_path
from holdfast.store.contract import NotAStore
from tests.backup.filled import assert_same, fill, opened, quiet
from tests.proof_size import sized
from tests.support import claim, every, run

KILLS = sized(4, 40)


def moments(lines, seed):
    """Some lines of all, the last ones more often: that is where files get their names."""
    rng = random.Random(seed)
    return [rng.choice([rng.randint(1, lines), rng.randint(max(lines - 40, 1), lines)]) for _ in range(KILLS)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_backup_leaves_no_file_of_that_name_or_a_whole_one(kind, victims, new_place, tmp_path):
    source = fill(new_place(kind), jobs=4)
    file = tmp_path / "b"
    _, lines, said = victims.run("backup", source.store, file)
    assert said == ""
    file.unlink()
    for moment in moments(lines, 1):
        killed, _, said = victims.run("backup", source.store, file, kill_at=moment)
        assert killed, said
        if file.exists():
            restored = new_place("sqlite")
            assert victims.run("restore", restored.store, file)[2] == ""
            file.unlink()
    header = backup(source, file, quiet)
    assert header.counts["tasks"] == 5
    assert not list(tmp_path.glob(".b*")), "what the killed ones left is gone"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_restore_leaves_the_store_that_was_there_or_the_whole_new_one(kind, victims, new_place, tmp_path):
    file, target = tmp_path / "b", fill(new_place(kind), jobs=2)
    backup(fill(new_place("sqlite"), jobs=6), file, quiet)
    with opened(target) as store:
        old = every(store, Lease)
    _, lines, said = victims.run("restore", new_place(kind).store, file)
    assert said == ""
    for moment in moments(lines, 2):
        killed, _, said = victims.run("restore", target.store, file, replace=True, kill_at=moment)
        assert killed, said
        with opened(target) as store:
            assert verify(store).differences == []
            assert len(every(store, Lease)) in {len(old), 2 * 7}
    assert victims.run("restore", target.store, file, replace=True)[2] == ""
    with opened(target) as store:
        assert len(every(store, Lease)) == 2 * 7
    assert not list(tmp_path.glob(".*.partial*"))


def test_a_killed_migration_is_no_store_and_goes_on_where_it_was(victims, new_place):
    source = fill(new_place("sqlite"), jobs=20)
    _, lines, said = victims.run("migrate", source.store, new_place("postgres").store)
    assert said == ""
    target = new_place("postgres")
    so_far = []
    for moment in [lines // 2, *moments(lines // 2, 3)]:
        killed, _, said = victims.run("migrate", source.store, target.store, kill_at=moment)
        assert killed or said == ""
        so_far.append(progress(target))
        if so_far[-1] is None and len(so_far) > 1:
            break  # what was left to do took fewer lines
    assert_progress(so_far)
    if so_far[-1] is not None:
        with pytest.raises(NotAStore, match="holdfast migrate"), opened(target):
            pass
        migrate(source, target, quiet)
    assert_same(source, target)


def progress(target):
    """How many records a killed run has left; None when there is no mark."""
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


def test_a_source_that_has_changed_since_is_copied_from_the_beginning(victims, new_place):
    source, target = fill(new_place("sqlite")), new_place("postgres")
    _, lines, _ = victims.run("migrate", source.store, new_place("postgres").store)
    assert victims.run("migrate", source.store, target.store, kill_at=lines * 2 // 3)[0]
    assert progress(target)
    with opened(source) as store:
        run(store, claim("later", "ll"))
    migrate(source, target, quiet)
    assert_same(source, target)
    assert sqlite_path(source.store).exists()
    with source_of(target) as copied:
        assert "unfinished_copy" not in copied.side.tables
