"""A deleted account is erased in slices: others write in between, and an interrupted erasure is finished later."""

from __future__ import annotations

import threading
import time

import pytest

from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.principal import ALL_SCOPES, Principal
from holdfast.core.row import SECOND
from holdfast.core.task import Task
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.retention import Retention
from holdfast.engine.verbs.accounts import CloseAccount
from holdfast.transport.webhooks.log_reader import LogReader
from tests.engine.test_webhooks import create as create_webhook
from tests.proof_size import FULL, sized
from tests.support import ACCOUNT, CAUSE, check_log, claim, every, heartbeat, once, put, run, transact
from tests.task_commands import a_task, create

GONE = "acct_gone"
RECORDS = (Task, Lease, Principal, Event)


@pytest.fixture
def closed_account(store):
    """A closed account with tasks, leases, stored answers, webhooks, deliveries and a log."""
    transact(store, *(create(f"t{n:03}", account=GONE) for n in range(30)), claim("kept", "l1"))
    transact(store, *(claim(f"job/{n}", f"l{n}", account=GONE, once=once(f"key-{n}")) for n in range(20)))
    hook = create_webhook().hook
    put(store, type(hook)(GONE, hook.id, principal="p", url=hook.url, secret="s"), kind="created")
    key = Principal(GONE, "key", name="first", key_hash="hash", scopes=ALL_SCOPES)
    put(store, key, kind="created")
    transact(store, create("last", account=GONE))
    LogReader(store).read_on(store.deliveries.pending_work(10).behind)
    run(store, CloseAccount(account=GONE, cause=CAUSE, keys=("key",), by=key, by_hash="hash"))
    return store


def left_over(store):
    """How many records the account still has."""
    return sum(record.account == GONE for kind in RECORDS for record in every(store, kind))


def assert_nothing_is_left(store):
    assert left_over(store) == 0
    with store.read() as reader:
        assert GONE not in reader.log_accounts()
        assert reader.task_counts(GONE) == []
    assert store.deliveries.page((GONE, "whk_1"), None, 2**53, 10) == []
    check_log(store)


def test_an_account_is_erased_in_slices_and_others_write_in_between(closed_account):
    store, slices = closed_account, 0
    before = left_over(store)
    while store.erase(GONE, 10):
        assert run(store, heartbeat("kept", "l1")).lease.account == ACCOUNT
        slices += 1
        after = left_over(store)
        if store.name != "memory":
            assert before - after <= 10, "a slice is bounded"
        before = after
    assert slices >= 5
    assert_nothing_is_left(store)
    assert [row.id for row in every(store, Lease)] == ["kept"]


def test_an_interrupted_erasure_is_finished_by_the_cleanup(closed_account, clock):
    assert closed_account.erase(GONE, 10)
    clock.advance(30 * 24 * 3600)
    run_all = lambda commands: transact(closed_account, *commands) if commands else []
    Cleanup(closed_account, run_all, Retention(tasks=0, names=0, events=0)).run()
    assert_nothing_is_left(closed_account)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_deleting_a_large_account_delays_others_by_less_than_a_second(opened, kind):
    store = opened(kind)
    rows = [a_task(f"t{n:06}", account=GONE) for n in range(sized(3_000, 200_000))]
    for first in range(0, len(rows), 2_000):
        put(store, *rows[first : first + 2_000], kind="created")
    run(store, claim("job", "l1", ttl=600 * SECOND))
    delays, erased = [0.0], threading.Event()

    def erase():
        while store.erase(GONE):
            pass
        erased.set()

    eraser = threading.Thread(target=erase)
    eraser.start()
    while not erased.is_set():
        began = time.monotonic()
        run(store, heartbeat("job", "l1"))
        delays.append(time.monotonic() - began)
    eraser.join()
    assert max(delays) < (1.0 if FULL else 10.0), "few rows delay nobody, but the machine may be busy"
