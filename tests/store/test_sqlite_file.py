"""A SQLite file used by several processes: private, written in fair order, and not writable by other programs."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.core.lease import Lease
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.fair_lock import FairLock
from tests.support import ACCOUNT, a_lease, check_log, every, in_time, put, wait_until

RACE = """
import sys, time
from holdfast.store.sqlite import SqliteStore
from tests.support import a_lease, put
store = SqliteStore(sys.argv[1])
store.open()
print("ready", flush=True)
sys.stdin.readline()
commits, end = 0, time.monotonic() + 2.0
while time.monotonic() < end:
    put(store, a_lease(sys.argv[2]))
    commits += 1
print(commits)
"""

STOP_WHILE_WRITING = """
import os, signal, sys
from holdfast.store.sqlite import SqliteStore
store = SqliteStore(sys.argv[1])
store.open()
with store.transaction():
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_only_the_owner_can_read_the_file(tmp_path):
    store = SqliteStore(tmp_path / "holdfast.db")  # this store creates its file itself, unlike that of the other tests
    store.open()
    put(store, a_lease())
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    store.close()
    assert {"holdfast.db", "holdfast.db-wal", "holdfast.db-shm", "holdfast.db-turn", "holdfast.db-lock"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_files_that_others_can_read_are_made_private(sqlite_store, caplog):
    put(sqlite_store, a_lease())
    files = [path for path in sqlite_store.path.parent.iterdir() if path.name.startswith(sqlite_store.path.name)]
    assert len(files) == 5
    for path in files:
        path.chmod(0o644)
    again = SqliteStore(sqlite_store.path)
    again.open()
    again.close()
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert f"other users could read or write {sqlite_store.path}-wal" in caplog.text


def test_a_missing_folder_is_created(tmp_path):
    store = SqliteStore(tmp_path / "deep" / "down" / "holdfast.db")
    store.open()
    store.close()


def test_a_file_that_is_not_a_database_is_refused(tmp_path):
    (tmp_path / "poem.txt").write_text("Shall I compare thee to a summer's day?" * 99)
    with pytest.raises(StoreUnavailable):
        SqliteStore(tmp_path / "poem.txt").open()


def test_a_program_with_another_sqlite_cannot_write(sqlite_store):
    put(sqlite_store, a_lease())
    sqlite_store.close()
    stranger = sqlite3.connect(sqlite_store.path)
    with pytest.raises(sqlite3.OperationalError, match="holdfast_writer"):
        stranger.execute("UPDATE state SET token = 0")
    stranger.rollback()
    stranger.close()


def test_every_commit_runs_the_trigger_that_blocks_other_programs(sqlite_store):
    """The trigger is on one row, so each way of committing must touch it."""
    seen = []
    put(sqlite_store, a_lease())
    sqlite_store._writer.create_scalar_function("holdfast_writer", lambda *_: seen.append(1))
    for write in (lambda: put(sqlite_store, a_lease()), sqlite_store.beat, lambda: sqlite_store.forget_answers(0)):
        seen.clear()
        write()
        assert seen


def test_two_stores_on_one_file_see_each_other_s_commits(sqlite_store, clock):
    other = SqliteStore(sqlite_store.path, clock)
    other.open()
    for number in range(3):
        put(sqlite_store, a_lease("a", ttl=number))
        put(other, a_lease("a", ttl=number + 10))
    assert [(row.version, row.ttl) for row in every(sqlite_store, Lease)] == [(6, 12)]
    check_log(other)
    other.close()


def test_two_processes_on_one_file_write_alternately(sqlite_store):
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, sqlite_store.path, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    commits = [int(racer.communicate()[0]) for racer in racers]
    assert min(commits) >= sum(commits) / 4, commits
    assert sum(row.version for row in every(sqlite_store, Lease)) == sum(commits)


@pytest.mark.parametrize("then", [signal.SIGCONT, signal.SIGKILL], ids=["continues", "dies"])
def test_a_program_that_is_stopped_while_it_writes_delays_others_for_a_bounded_time(sqlite_store, then):
    program = subprocess.Popen([sys.executable, "-c", STOP_WHILE_WRITING, sqlite_store.path])
    try:
        assert os.WIFSTOPPED(os.waitpid(program.pid, os.WUNTRACED)[1])
        sqlite_store.wait_seconds = 0.2
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="fuser") as refusal:
                in_time(lambda: put(sqlite_store, a_lease()))
            assert (refusal.value.applied, refusal.value.retry_after) == ("no", 1)
        with sqlite_store.read() as reader:
            assert reader.row(Lease, ACCOUNT, "job") is None
        program.send_signal(then)
        program.wait(10)
        sqlite_store.wait_seconds = 10.0
        put(sqlite_store, a_lease())
    finally:
        program.kill()
        program.wait()


def test_a_process_in_the_queue_does_not_pass_itself(tmp_path):
    """A caller has given up, and its process is in the queue: the next caller takes that place and no other."""
    holder, queued, third = (FairLock(tmp_path / "holdfast.db") for _ in range(3))
    with holder.take():
        with pytest.raises(StoreUnavailable), queued.take(0.05):
            pass
        wait_until(lambda: not is_free(third._turnstile))
        assert not queued._take_at_once()
        assert not is_free(third._turnstile), "the place at the turnstile is kept"
    with third.take(10):
        pass
    for lock in (holder, queued, third):
        lock.close()


def is_free(file):
    """Whether nobody holds the lock of this file."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(file, fcntl.LOCK_UN)
    return True


def test_a_turn_that_nobody_waits_for_any_more_is_passed_on(tmp_path):
    holder, leaver, third = (FairLock(tmp_path / "holdfast.db") for _ in range(3))
    with holder.take(), pytest.raises(StoreUnavailable), leaver.take(0.1):
        pass
    with third.take(10.0), pytest.raises(StoreUnavailable), leaver.take(0.1):
        pass
    with leaver.take(10.0):
        pass
    for lock in (holder, leaver, third):
        lock.close()


def test_a_process_that_has_queued_for_long_fails_soon(tmp_path):
    """Otherwise each of its threads would wait the whole time, one after the other."""
    holder, late = (FairLock(tmp_path / "holdfast.db") for _ in range(2))
    with holder.take():
        with pytest.raises(StoreUnavailable), late.take(0.1):
            pass
        late._queued_at -= 100
        with pytest.raises(StoreUnavailable, match="for 100 s"), late.take(60.0):
            pass
    holder.close()
    late.close()


def test_all_names_of_a_file_share_one_write_lock(tmp_path):
    (tmp_path / "holdfast.db").touch()
    (tmp_path / "link.db").symlink_to(tmp_path / "holdfast.db")
    named, linked = FairLock(tmp_path / "holdfast.db"), FairLock(tmp_path / "link.db")
    with named.take(), pytest.raises(StoreUnavailable), linked.take(0.1):
        pass
    named.close()
    linked.close()


def test_many_threads_can_read_at_once(sql_store):
    put(sql_store, a_lease())
    failures = []

    def read_repeatedly():
        try:
            for _ in range(100):
                with sql_store.read() as reader:
                    assert reader.row(Lease, ACCOUNT, "job") is not None
        except Exception as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    gazers = [threading.Thread(target=read_repeatedly) for _ in range(4)]
    for gazer in gazers:
        gazer.start()
    for gazer in gazers:
        gazer.join()
    sys.setswitchinterval(before)
    assert failures == []


def test_a_failed_read_does_not_break_the_next(sql_store):
    put(sql_store, a_lease())
    with pytest.raises(ZeroDivisionError), sql_store.read():
        raise ZeroDivisionError
    with sql_store.read() as reader:
        assert reader.row(Lease, ACCOUNT, "job") is not None
