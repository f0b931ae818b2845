"""A backup is one snapshot of a store, and the file is complete or absent."""

import os
import threading
from pathlib import Path

import apsw
import pytest

import holdfast
from holdfast.backup import files
from holdfast.backup import header as headers
from holdfast.backup.backup import backup
from holdfast.backup.endpoint import CopyRefused
from holdfast.client.errors import ServerError
from holdfast.settings import Settings, sqlite_path
from tests.backup.sample_store import fill, newest_token, no_report, opened
from tests.support import claim, run, wait_until

KINDS = ["sqlite", "postgres"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_header_describes_the_backup(kind, new_store_settings, tmp_path):
    source, file = fill(new_store_settings(kind)), tmp_path / "b"
    header = backup(source, file, no_report)
    assert file.stat().st_mode & 0o777 == 0o600
    assert headers.read(apsw.Connection(str(file)), file) == header
    assert header.source == kind
    assert header.token == newest_token(source)
    assert header.counts["tasks"] == 5
    assert header.counts["answers"] == 2
    assert header.logs.keys() == {"default", "acct_ünï"}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith((".b", "b"))] == ["b"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_taken_while_servers_write_is_one_snapshot(kind, new_store_settings, tmp_path):
    """The backup is verified: every row is the fold of its events, every count is right."""
    source = fill(new_store_settings(kind))
    stop, written = threading.Event(), [0]

    def write():
        with opened(source) as store:
            while not stop.is_set():
                run(store, claim(f"busy/{written[0]}", f"b{written[0]}"))
                written[0] += 1

    def wait_for_another(*_):
        before = written[0]
        wait_until(lambda: written[0] > before)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = []
        for number in range(3):
            wait_for_another()
            steps = iter([wait_for_another])
            header = backup(source, tmp_path / f"{number}", lambda *_, steps=steps: next(steps, no_report)())
            assert next(steps, None) is None, "others wrote while the backup was taken"
            seen.append(header.counts["leases"])
    finally:
        stop.set()
        writer.join()
    assert seen == sorted(set(seen))


def test_a_backup_cannot_be_served(new_store_settings, tmp_path):
    backup(fill(new_store_settings("sqlite")), tmp_path / "b", no_report)
    with pytest.raises(ServerError, match="holdfast restore") as refused:
        holdfast.open(tmp_path / "b")
    assert refused.value.code == "no_store"


def test_a_backup_overwrites_a_file_only_with_replace(new_store_settings, tmp_path):
    source, file = fill(new_store_settings("sqlite")), tmp_path / "b"
    file.write_text("something else")
    with pytest.raises(CopyRefused, match="--replace"):
        backup(source, file, no_report)
    assert file.read_text() == "something else"
    backup(source, file, no_report, replace=True)
    assert headers.read(apsw.Connection(str(file)), file).counts["tasks"] == 5


def test_a_backup_never_overwrites_a_store(new_store_settings):
    source = fill(new_store_settings("sqlite"))
    with pytest.raises(CopyRefused, match="is a store"):
        backup(source, sqlite_path(source.store), no_report, replace=True)
    assert newest_token(source)


def test_a_store_that_differs_from_its_log_is_refused(new_store_settings, tmp_path):
    source = fill(new_store_settings("sqlite"))
    connection = apsw.Connection(source.store.removeprefix("sqlite:///"))
    connection.execute("UPDATE leases SET owner = 'mallory' WHERE id = 'job/1'")
    connection.close()
    with pytest.raises(CopyRefused, match=r"lease:job/1: owner differ.*--no-verify"):
        backup(source, tmp_path / "b", no_report)
    assert not (tmp_path / "b").exists()
    backup(source, tmp_path / "b", no_report, check=False)


@pytest.mark.parametrize(
    ("store", "error"),
    [
        ("memory:", "ends with its process"),
        ("sqlite:///{tmp}/absent.db", "does not exist"),
        ("sqlite:///{tmp}/text", "not an SQLite file"),
        ("sqlite:///{tmp}/empty", "is not a store"),
    ],
)
def test_a_source_that_is_not_a_store_is_refused(store, error, tmp_path):
    (tmp_path / "text").write_text("not a database, but long enough to be taken for one" * 99)
    (tmp_path / "empty").touch()
    with pytest.raises(CopyRefused, match=error):
        backup(Settings(store=store.format(tmp=tmp_path)), tmp_path / "b", no_report)
    assert not (tmp_path / "b").exists()


def test_a_full_disk_is_reported_and_leaves_no_file(new_store_settings, small_disk):
    source = fill(new_store_settings("sqlite"))
    (small_disk / "ballast").write_bytes(bytes(900_000))
    with pytest.raises(CopyRefused, match=f"cannot write {small_disk}/b: no space left"):
        backup(source, small_disk / "b", no_report)
    assert [path.name for path in small_disk.iterdir()] == ["ballast"]


def test_a_folder_that_is_not_writable_is_reported(new_store_settings):
    source = fill(new_store_settings("sqlite"))
    with pytest.raises(CopyRefused, match=r"cannot write /proc/\.b\.partial: "):
        backup(source, Path("/proc/b"), no_report)


def test_a_file_that_another_run_completes_is_not_emptied(tmp_path, monkeypatch):
    """The other run gives the file its name between our opening and our locking of it."""
    path, lock = tmp_path / "copy", files._lock_exclusively
    partial = path.with_name(".copy.partial")
    partial.write_bytes(b"all of the other run")

    def complete_then_lock(file, locked):
        if not path.exists():
            partial.rename(path)
        lock(file, locked)

    monkeypatch.setattr(files, "_lock_exclusively", complete_then_lock)
    with pytest.raises(CopyRefused), files.write_atomically(path, replace=False):
        assert path.read_bytes() == b"all of the other run"
    assert path.read_bytes() == b"all of the other run"


def test_a_file_that_another_run_is_writing_is_left_as_it_is(tmp_path):
    path = tmp_path / "copy"
    with files.write_atomically(path, replace=False) as partial:
        partial.write_bytes(b"all of the first run")
        with (
            pytest.raises(CopyRefused, match="another process is writing"),
            files.write_atomically(path, replace=False),
        ):
            pass
        assert partial.read_bytes() == b"all of the first run"
    assert path.read_bytes() == b"all of the first run"


@pytest.mark.parametrize("replace", [False, True], ids=["new", "replaced"])
def test_a_file_is_flushed_before_it_gets_its_name_and_its_folder_after_that(replace, tmp_path, monkeypatch):
    path, flush, flushed = tmp_path / "copy", os.fsync, []
    if replace:
        path.write_bytes(b"the former one")

    def record_then_flush(file):
        flushed.append((os.fstat(file).st_ino, path.exists() and path.read_bytes()))
        flush(file)

    monkeypatch.setattr(files.os, "fsync", record_then_flush)
    with files.write_atomically(path, replace=replace) as partial:
        partial.write_bytes(b"the new one")
    before = b"the former one" if replace else False
    assert flushed == [(path.stat().st_ino, before), (tmp_path.stat().st_ino, b"the new one")]
