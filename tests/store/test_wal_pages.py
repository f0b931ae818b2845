"""How many pages a commit writes into SQLite's WAL, in a store with a thousand rows of each kind."""

from __future__ import annotations

import hashlib
import struct

import apsw
import pytest

from holdfast.core.holdings.lease_ids import session_lease_id
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.engine.verbs.locks import ReleaseLock, RenewLock
from holdfast.store.sqlite import SqliteStore
from tests.support import ACCOUNT, ALICE, DrivenClock, acquire, claim, heartbeat, release, run, transact
from tests.task_commands import BASE, beat, begin, complete, create, heartbeat_session, take_this

ROWS, TIMES, BATCH = 1_000, 60, 64
WAL_HEADER, FRAME_HEADER, PAGE = 32, 24, 4096


def named(number):
    """A name; those of following numbers are far apart in an index."""
    return f"repository/{hashlib.sha256(str(number).encode()).hexdigest()[:12]}/{number}"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = SqliteStore(tmp_path_factory.mktemp("wal") / "holdfast.db", DrivenClock())
    store.checkpoint_pages = 1_000_000
    store.open()
    for first in range(0, ROWS, 50):
        store._clock.advance(1)
        numbers = range(first, first + 50)
        transact(store, *(claim(named(number), f"lease-{number}") for number in numbers))
        transact(store, *(acquire(f"lock-{named(number)}", limit=2 * ROWS) for number in numbers))
        transact(store, *(create(f"task-{number:05}") for number in numbers))
        transact(store, *(begin(f"session-{number:05}") for number in numbers))
    yield store
    store.close()


def pages_written(store):
    """How many pages are in the WAL since it was emptied."""
    wal = store.path.with_name(store.path.name + "-wal").read_bytes()
    assert struct.unpack(">I", wal[8:12]) == (PAGE,)
    frames = range(WAL_HEADER, len(wal), FRAME_HEADER + PAGE)
    return sum(wal[at + 8 : at + 16] == wal[16:24] for at in frames)  # frames of before have another salt


def hold_lock(verb, **more):
    def command(store, number):
        lease_id = run(store, acquire(f"lock-{named(number)}", limit=2 * ROWS)).lease_id
        return verb(**BASE, by=ALICE, name=f"lock-{named(number)}", lease_id=lease_id, **more)

    return command


def renew_session(store, number):
    with store.read() as reader:
        session = reader.row(Session, ACCOUNT, f"session-{7 * number:05}")
    return heartbeat_session(session.id, lease_id=session_lease_id("secret-life-1", session))


OPERATIONS = {
    # Each command, and how many pages it may write, on average.
    "claim a new job": (lambda _, n: claim(named(ROWS + n), f"lease-{ROWS + n}"), 12),
    "renew a job": (lambda _, n: heartbeat(named(7 * n), f"lease-{7 * n}"), 8.8),
    "release a job": (lambda _, n: release(named(7 * n), f"lease-{7 * n}"), 9.8),
    "claim a known job": (lambda _, n: claim(named(7 * n), f"again-{n}"), 9.8),
    "acquire a new lock": (lambda _, n: acquire(f"lock-{named(ROWS + n)}", limit=2 * ROWS), 13.4),
    "renew a lock": (hold_lock(RenewLock, ttl=90 * SECOND), 8.5),
    "release a lock": (hold_lock(ReleaseLock), 11.3),
    "create a task": (lambda _, n: create(f"task-{ROWS + n:05}"), 12.2),
    "claim a task": (lambda _, n: take_this(f"task-{7 * n:05}"), 12.9),
    "renew a task": (lambda _, n: beat(f"task-{7 * n:05}"), 7.4),
    "complete a task": (lambda _, n: complete(f"task-{7 * n:05}"), 11.6),
    "renew a session": (renew_session, 8.5),
}


def count_pages(store, *commands):
    """How many pages one batch writes."""
    store._clock.advance(0.02)
    store._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    for outcome in transact(store, *commands):
        assert not isinstance(outcome, BaseException), outcome
    return pages_written(store)


def test_an_operation_alone_writes_few_pages(store):
    """In one test: a task is claimed before it is completed."""
    written = {}
    for name, (command, _) in OPERATIONS.items():
        written[name] = sum(count_pages(store, command(store, number)) for number in range(TIMES)) / TIMES
    assert {name: pages for name, pages in written.items() if pages > OPERATIONS[name][1]} == {}
    assert min(written.values()) > 4, "the WAL was not counted"


def test_the_jobs_of_a_batch_share_pages(store):
    names = [(named(2 * ROWS + number), f"lease-{number}") for number in range(BATCH)]
    assert count_pages(store, *(claim(*name) for name in names)) < 90
    assert count_pages(store, *(heartbeat(*name) for name in names)) < 45
    assert count_pages(store, *(release(*name) for name in names)) < 75
    assert count_pages(store, *(claim(*name) for name in names)) < 75
