"""Retention of the log beside damaged records: it neither loops, nor writes without end, nor removes young events."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.core.plan import DAY
from holdfast.core.row import LATEST
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.retention import Retention, WriteSnapshot
from tests.damaged_records import without_rules, write
from tests.support import ACCOUNT, START, STORES, DrivenClock, check_log, claim, every, make_store, run, transact

MAX_PASSES = 10


@pytest.fixture(params=STORES)
def site(request, tmp_path, new_postgres_database):
    """A store and its cleanup, on each store."""
    clock = DrivenClock()
    store = make_store(request.param, tmp_path, new_postgres_database, clock)
    yield Site(store, clock)
    store.close()


class Site:
    """A store with a cleanup that keeps events for 30 days. Rows of the memory store are damaged in name only."""

    def __init__(self, store, clock):
        self.store, self.clock, self.damaged = store, clock, set()
        self.cleanup = Cleanup(store, self.run_all, Retention(tasks=0, names=0, events=30 * DAY))

    def run_all(self, commands):
        """The result of each command, or None for one that failed, as the sweep has it."""
        usable = [each for each in commands if not (isinstance(each, WriteSnapshot) and each.key[2] in self.damaged)]
        outcomes = dict(zip(usable, transact(self.store, *usable) if usable else [], strict=True))
        found = (outcomes.get(command) for command in commands)
        return [None if isinstance(outcome, BaseException) else outcome for outcome in found]

    def run_round(self):
        """One round of the cleanup thread; returns how many passes it took."""
        passes = 1
        while self.cleanup.run() and passes < MAX_PASSES:
            passes += 1
        return passes

    def damage_lease(self, name):
        if self.store.name == "memory":
            self.damaged.add(name)
            return
        with without_rules(self.store):
            write(self.store, f"UPDATE leases SET metadata = '{{' WHERE id = '{name}'")

    def repair_lease(self, name):
        self.damaged.discard(name)
        if self.store.name != "memory":
            write(self.store, f"UPDATE leases SET metadata = NULL WHERE id = '{name}'")

    def log_bounds(self):
        with self.store.read() as reader:
            return reader.log_bounds(ACCOUNT)


def test_a_damaged_row_makes_cleanup_neither_loop_nor_write_without_end(site):
    for name in ("first", "bad", "last"):
        run(site.store, claim(name, f"l-{name}"))
    site.damage_lease("bad")
    site.clock.now = START + 31 * DAY
    assert site.run_round() < MAX_PASSES
    floor, last = site.log_bounds()
    assert floor == 1, "what is older than the damaged row's events is removed"
    for _ in range(5):
        assert site.run_round() == 1
    assert site.log_bounds() == (floor, last), "no row gets another snapshot"
    site.repair_lease("bad")
    site.run_round()
    assert {event.at for event in every(site.store, Event)} == {site.clock.now}
    check_log(site.store)


WRONG_TIMES = (-1, 5, LATEST, LATEST + 1)


def set_times(store, times):
    """Overwrite the time of one event in each account: `times` has (account, seq, time)."""
    if store.name == "memory":
        for account, seq, at in times:
            store.log[account] = [replace(each, at=at) if each.seq == seq else each for each in store.log[account]]
        return
    with without_rules(store):
        for account, seq, at in times:
            write(store, f"UPDATE events SET at = {at} WHERE account = '{account}' AND seq = {seq}")


def events_left(store, account):
    """The numbers of the first six events that are still in the log of an account."""
    with store.read() as reader:
        return {event.seq for event in reader.events(account, 0, 100) if event.seq <= 6}


def test_an_event_with_a_wrong_time_takes_no_young_event_with_it(site):
    wrong = [(f"{seq}/{at}", seq, at) for seq in range(1, 7) for at in WRONG_TIMES]
    for number in range(1, 7):
        site.clock.now = START + (20 * DAY if number > 3 else 0)
        transact(site.store, *(claim(f"job-{number}", "l", account=account) for account, _, _ in wrong))
    set_times(site.store, wrong)
    site.clock.now = START + 31 * DAY
    site.run_round()
    for account, seq, _ in wrong:
        left = events_left(site.store, account) - {seq}
        assert left == {4, 5, 6} - {seq}, f"{account}: the first three are 31 days old, the others 11"
    site.clock.now = START + 60 * DAY
    site.run_round()
    for account, seq, _ in wrong:
        assert events_left(site.store, account) <= {seq}, f"{account}: all are more than 30 days old"
