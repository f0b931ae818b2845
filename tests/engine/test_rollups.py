"""The roll-up thread on every store: each event is counted once, whoever counts, and old roll-ups are removed."""

import pytest

from holdfast.core.rollups.histogram import bucket_of
from holdfast.core.rollups.intervals import MINUTE, RESOLUTIONS
from holdfast.core.rollups.rollup import Rollup, all_counts, merge
from holdfast.core.row import SECOND
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.retention import Retention
from holdfast.engine.rollups import counting
from holdfast.engine.rollups import thread as passes
from holdfast.engine.rollups.counting import count_log, idle_seconds
from holdfast.engine.rollups.thread import RollupThread
from holdfast.engine.verify import verify
from tests.proof_size import sized
from tests.support import ACCOUNT, claim, transact
from tests.task_commands import beat, complete, create, fail, take

MAX_ROLLUPS = sum(each.keep // each.length + 1 for each in RESOLUTIONS)
"""An account has at most so many roll-ups."""


def total(store, length=MINUTE):
    found = Rollup()
    for _, rollup in store.rollups.page(ACCOUNT, length, 0):
        found = merge(found, rollup)
    return found


def tasks_of(store, length=MINUTE):
    found = total(store, length)
    return all_counts([*found.types.values(), found.other])


def count_rows(store):
    return sum(len(store.rollups.page(ACCOUNT, each.length, 0)) for each in RESOLUTIONS)


def test_waiting_and_run_time_are_true_over_passes_and_restarts(store, clock):
    transact(store, create("t1", max_attempts=2), create("t2"), claim("deploy"))
    RollupThread(store).run()
    clock.advance(90)
    transact(store, take("work"))
    clock.advance(60)
    transact(store, beat("t1"))
    RollupThread(store).run()
    clock.advance(60)
    transact(store, fail("t1", reason="no"))
    clock.advance(60)
    transact(store, take("work", seed="s2", limit=2))
    RollupThread(store).run()
    clock.advance(30)
    transact(store, complete("t1", seed="s2"))
    clock.advance(60)
    RollupThread(store).run()
    found = tasks_of(store)
    assert (found.created, found.claimed, found.failed, found.completed) == (2, 3, 1, 1)
    assert found.waits == {bucket_of(90 * SECOND): 1, bucket_of(60 * SECOND): 1, bucket_of(270 * SECOND): 1}
    assert found.runs == {bucket_of(120 * SECOND): 1, bucket_of(30 * SECOND): 1}
    assert (found.pending, found.running) == (2, 2)
    assert total(store).claimed == 1
    assert all(tasks_of(store, each.length).waits == found.waits for each in RESOLUTIONS)


def test_two_servers_count_every_event_once(opened, clock):
    stores = [opened("postgres", clock), opened("postgres", clock)]
    for number in range(sized(4, 40)):
        transact(stores[0], create(f"t{number}"))
        clock.advance(61)
        read = [(store, store.rollups.uncounted(10**18, 9)[0]) for store in stores]
        moves = [count_log(store, uncounted, 100, lambda _: False)[0] for store, uncounted in read]
        moved = [store.rollups.add([move], {}) for store, move in zip(stores, moves, strict=True)]
        assert moved == [[ACCOUNT], []], "the second one must find that the cursor has moved"
    assert tasks_of(stores[1]).created == sized(4, 40)


def test_an_account_that_another_server_has_just_counted_is_left_to_it(store, clock):
    transact(store, create("t1"))
    RollupThread(store).run()
    transact(store, create("t2"))
    clock.advance(20)
    RollupThread(store).run()
    assert tasks_of(store).created == 1
    clock.advance(40)
    RollupThread(store).run()
    assert tasks_of(store).created == 2
    assert store.rollups.counted_until(ACCOUNT).counted_to == clock()


def test_a_long_log_is_counted_in_several_writes_and_pages(store, clock, monkeypatch):
    monkeypatch.setattr(counting, "PAGE", 3)
    monkeypatch.setattr(passes, "EVENTS_PER_SAVE", 7)
    transact(store, *(create(f"t{number}") for number in range(20)))
    transact(store, take("work", limit=20))
    thread = RollupThread(store)
    pauses = []
    thread.pause = lambda seconds: pauses.append(seconds) or len(pauses) == 3
    thread.run()
    assert 0 < tasks_of(store).created < 20, "it stops between two pages when the server stops"
    clock.advance(61)
    RollupThread(store).run()
    found = tasks_of(store)
    assert (found.created, found.claimed, sum(found.waits.values())) == (20, 20, 20)


def test_the_thread_waits_less_when_it_is_far_behind():
    assert idle_seconds(0.01, 5_000) == pytest.approx(0.15)
    assert idle_seconds(0.01, 2_000_000) == pytest.approx(0.01)
    assert idle_seconds(9.0, 2_000_000) == idle_seconds(9.0, 0) == 0.5


def test_thirty_days_leave_a_bounded_number_of_roll_ups(memory, clock):
    step = sized(3_600, 300)
    for number in range(40 * 86_400 // step):
        transact(memory, create(f"t{number}"))
        clock.advance(step)
        RollupThread(memory).run()
    assert count_rows(memory) <= MAX_ROLLUPS
    kept = [start for each in RESOLUTIONS for start, _ in memory.rollups.page(ACCOUNT, each.length, 0)]
    assert min(kept) >= clock() - RESOLUTIONS[-1].keep - RESOLUTIONS[-1].length
    assert tasks_of(memory, RESOLUTIONS[-1].length).created >= 30 * 86_400 // step


def test_old_roll_ups_are_removed(store, clock):
    transact(store, create("t1"))
    RollupThread(store).run()
    clock.advance(40 * 86_400)
    transact(store, create("t2"))
    RollupThread(store).run()
    assert tasks_of(store, RESOLUTIONS[-1].length).created == 1


def test_events_are_not_removed_before_they_are_counted(store, clock):
    transact(store, create("t1"))
    RollupThread(store).run()
    counted = store.rollups.counted_until(ACCOUNT).seq
    transact(store, create("t2"))
    clock.advance(90)
    transact(store, create("t3"))
    cleanup = Cleanup(store, lambda commands: transact(store, *commands), Retention(events=60 * SECOND))
    cleanup.run()
    with store.read() as reader:
        assert reader.log_bounds(ACCOUNT)[0] == counted
    RollupThread(store).run()
    cleanup.run()
    with store.read() as reader:
        assert reader.log_bounds(ACCOUNT)[0] > counted
    assert tasks_of(store).created == 3


def test_an_erased_account_leaves_no_roll_ups(store, clock):
    transact(store, create("t1"))
    RollupThread(store).run()
    while store.erase(ACCOUNT):
        pass
    assert count_rows(store) == 0
    assert store.rollups.counted_until(ACCOUNT) is None


def test_a_pass_that_is_overtaken_by_the_erasing_of_its_account_leaves_nothing(store, clock):
    transact(store, create("t1"))
    RollupThread(store).run()
    transact(store, create("t2"))
    clock.advance(61)
    (uncounted,) = store.rollups.uncounted(clock(), 9)
    counted, _ = count_log(store, uncounted, 100, lambda _: False)
    while store.erase(ACCOUNT):
        pass
    assert store.rollups.add([counted], {}) == []
    assert (count_rows(store), store.rollups.counted_until(ACCOUNT)) == (0, None)


def test_many_accounts_are_saved_a_few_at_a_time(store, clock, monkeypatch):
    monkeypatch.setattr(passes, "ACCOUNTS_PER_SAVE", 2)
    for number in range(5):
        transact(store, create(f"t{number}", account=f"account{number}"))
    saved = []
    add = store.rollups.add
    monkeypatch.setattr(store.rollups, "add", lambda counted, *rest: saved.append(len(counted)) or add(counted, *rest))
    RollupThread(store).run()
    assert saved == [2, 2, 1]
    assert store.rollups.uncounted(clock(), 9) == []


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("body", ["", "{broken", '{"types": []}', '"text"'])
def test_a_damaged_roll_up_counts_as_empty_and_is_replaced(store, clock, body):
    transact(store, create("t1"))
    RollupThread(store).run()
    with store.write() as (execute, _):
        execute("UPDATE rollups SET body = ?", body)
    assert verify(store).differences == [], "only the log and its rows are verified"
    assert tasks_of(store).created == 0
    transact(store, create("t2"))
    clock.advance(46)
    RollupThread(store).run()
    assert tasks_of(store, RESOLUTIONS[-1].length).created == 1


def test_tasks_that_cannot_be_claimed_yet_are_counted_by_type(store, clock):
    later = {"scheduled_at": clock() + 3600 * SECOND}
    transact(store, create("a1", type="a", **later), create("a2", type="a", **later), create("a3", type="a"))
    transact(store, create("b1", type="b"), create("c1", type="c", after=["a1"]))
    transact(store, create("a4", account="other", **later))
    assert store.rollups.delayed_tasks(ACCOUNT) == {"a": 2, "c": 1}
    RollupThread(store).run()
    assert (total(store).pending, total(store).delayed) == (5, 3)


def test_only_a_server_counts(memory, started):
    assert started(memory).rollups is None
    assert started(memory, serving=True).rollups is not None
