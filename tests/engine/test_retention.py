"""Retention: only old finished rows and events are removed, in small passes, and the log still folds into every row."""

from __future__ import annotations

import pytest

from holdfast.core.event import REMOVAL_VERBS, Event
from holdfast.core.lease import Lease
from holdfast.core.plan import DAY
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine import cleanup as retention
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.retention import PurgeTask, RemoveRow, Retention, WriteSnapshot
from holdfast.engine.view import View
from holdfast.store.needs import AllNeeds
from holdfast.store.sql import queries
from holdfast.store.sql import store as sql_store
from tests.support import (
    ACCOUNT,
    ALICE,
    START,
    a_lease,
    acquire,
    check_log,
    claim,
    every,
    open_session,
    put,
    release,
    run,
    transact,
)  # fmt: skip
from tests.task_commands import (
    BASE,
    beat,
    begin,
    cancel,
    close_session,
    complete,
    create,
    fail,
    requeue,
    sweep,
    take_this,
)

DAYS = DAY // SECOND


def run_cleanup(store, passes=1, **kept):
    """Run passes of the cleanup with these retention periods."""
    settings = Retention(**({"tasks": 0, "events": 0, "names": 0} | kept))
    cleanup = Cleanup(store, lambda commands: transact(store, *commands) if commands else [], settings)
    for _ in range(passes):
        cleanup.run()


def ids(store, row_type=Task):
    return [row.id for row in every(store, row_type)]


@pytest.fixture
def filled_store(store, clock):
    """One task in every state: done, cancelled, dead, held, waiting and scheduled."""
    transact(store, *(create(name, lease_duration=99 * DAY) for name in ("dead", "done", "dropped", "held", "ready")))
    transact(
        store, take_this("dead"), take_this("done"), take_this("held"), create("later", scheduled_at=START + 9 * DAY)
    )
    transact(store, fail("dead", permanent=True), complete("done"), cancel("dropped"))
    return store


# -- tasks -------------------------------------------------------------------------------------------------------


def test_only_tasks_that_finished_long_ago_are_purged(filled_store, clock):
    clock.now = START + 7 * DAY
    run_cleanup(filled_store, tasks=7 * DAY)
    assert len(ids(filled_store)) == 6, "at the limit itself it is not over"
    clock.now += 1
    run_cleanup(filled_store, tasks=7 * DAY)
    assert ids(filled_store) == ["held", "later", "ready"]
    check_log(filled_store)


def test_tasks_that_changed_within_the_retention_stay(filled_store, clock):
    clock.now = START + 6 * DAY
    run(filled_store, cancel("ready"))
    clock.now = START + 8 * DAY
    run_cleanup(filled_store, tasks=7 * DAY)
    assert ids(filled_store) == ["held", "later", "ready"]


def test_dead_letters_that_are_kept_do_not_block_the_purge_of_others(filled_store, clock, monkeypatch):
    monkeypatch.setattr(retention, "TASKS_PER_PASS", 1)
    clock.now = START + 8 * DAY
    run_cleanup(filled_store, passes=3, tasks=7 * DAY, dead_letters=False)
    assert ids(filled_store) == ["dead", "held", "later", "ready"]
    check_log(filled_store)


def test_a_task_that_changed_after_it_was_chosen_stays(filled_store, clock):
    clock.now = START + 8 * DAY
    purge = {name: PurgeTask(**BASE, task_id=name, before=START + DAY, dead=False) for name in ids(filled_store)}
    run(filled_store, requeue("dead"))
    assert {name: run(filled_store, command) for name, command in purge.items()} == {
        "dead": False, "done": True, "dropped": True, "held": False, "later": False, "ready": False,
    }  # fmt: skip
    assert run(filled_store, PurgeTask(**BASE, task_id="dead", before=clock.now + 1, dead=True)) is False
    assert run(filled_store, PurgeTask(**BASE, task_id="never", before=clock.now + 1, dead=True)) is False
    check_log(filled_store)


def test_nothing_is_purged_without_a_retention(filled_store, clock):
    clock.now = START + 999 * DAY
    run_cleanup(filled_store)
    assert len(ids(filled_store)) == 6


def test_a_pass_purges_at_most_a_thousand_tasks_oldest_first(store, clock):
    rows = [create(f"t{number:04}").task for number in range(1_100)]
    put(store, *(row for row in rows[:50]))
    transact(store, *(cancel(row.id) for row in rows[:50]))
    clock.advance(1)
    put(store, *rows[50:])
    transact(store, *(cancel(row.id) for row in rows[50:]))
    clock.advance(8 * DAYS)
    run_cleanup(store, tasks=7 * DAY)
    left = ids(store)
    assert len(left) == 100
    assert min(left) >= "t0050"
    run_cleanup(store, tasks=7 * DAY)
    assert ids(store) == []
    check_log(store)


# -- names and sessions ------------------------------------------------------------------------------------------


def test_unused_names_and_sessions_are_removed(store, clock):
    put(
        store, a_lease("free", ends=None), a_lease("listed", ends=None, acl='["user:bob"]'),
        a_lease("held", ends=START + 99 * DAY), a_lease("__election/abcdefgh", ends=None),
        a_lease("resting", ends=None, available_at=START + 99 * DAY), ALICE,
    )  # fmt: skip
    transact(store, begin("over"), open_session("open"))
    run(store, close_session("over"))
    clock.advance(3_601)
    run_cleanup(store, names=30 * DAY)
    assert "__election/abcdefgh" not in ids(store, Lease), (
        "any client can create elections, so vacant ones are removed after an hour"
    )
    assert len(ids(store, Lease)) == 4
    clock.now = START + 30 * DAY + 1
    run_cleanup(store, names=30 * DAY)
    assert ids(store, Lease) == ["held", "listed", "resting"]
    assert ids(store, Session) == ["open"]
    assert ids(store, Principal) == [ALICE.id]
    check_log(store)


def test_a_name_that_is_used_again_meanwhile_stays(store, clock):
    run(store, claim("job", "l1"))
    run(store, release("job", "l1"))
    clock.advance(31 * DAYS)
    before = clock.now - 30 * DAY
    run(store, claim("job", "l2"))
    assert run(store, RemoveRow(**BASE, key=("leases", ACCOUNT, "job"), before=before)) is False
    assert ids(store, Lease) == ["job"]


@pytest.mark.parametrize("together", [False, True], ids=["later", "in one batch"])
def test_a_removed_name_that_is_used_again_continues_its_versions(store, clock, together):
    run(store, claim("job", "l1"))
    run(store, release("job", "l1"))
    clock.advance(31 * DAYS)
    forget = RemoveRow(**BASE, key=("leases", ACCOUNT, "job"), before=clock.now - 30 * DAY)
    if together:
        _, claimed = transact(store, forget, claim("job", "l2"))
    else:
        run(store, forget)
        claimed = run(store, claim("job", "l2"))
    assert (claimed.lease.version, claimed.lease.token, claimed.previous) == (4, 2, None)
    check_log(store)


@pytest.mark.parametrize("together", [False, True], ids=["later", "in one batch"])
def test_a_removed_session_that_is_opened_again_continues_its_versions(store, clock, together):
    transact(store, begin(), close_session())
    clock.advance(31 * DAYS)
    forget = RemoveRow(**BASE, key=("sessions", ACCOUNT, "s1"), before=clock.now - 30 * DAY)
    if together:
        _, begun = transact(store, forget, begin(seed="life-2"))
    else:
        run(store, forget)
        begun = run(store, begin(seed="life-2"))
    assert (begun.session.version, begun.session.generation, begun.resumed) == (4, 1, False)
    check_log(store)


def test_every_name_is_checked_over_several_passes(store, clock, monkeypatch):
    monkeypatch.setattr(retention, "ROWS_PER_PASS", 3)
    put(store, *(a_lease(f"held-{number}", ends=START + 99 * DAY) for number in range(7)), a_lease("last", ends=None))
    clock.now = START + 31 * DAY
    run_cleanup(store, passes=4, names=30 * DAY)
    assert "last" not in ids(store, Lease)
    assert len(ids(store, Lease)) == 7


def test_a_lock_stays_after_its_session_was_removed(store, clock):
    run(store, open_session("s1"))
    run(store, acquire("lock", session_id="s1", ttl=90 * DAY))
    clock.advance(60)
    sweep(store)
    clock.advance(31 * DAYS)
    run_cleanup(store, names=30 * DAY)
    assert ids(store, Session) == []
    assert run(store, acquire("lock", ttl=90 * DAY)).lease.id == "lock"


# -- the log -----------------------------------------------------------------------------------------------------


def test_old_events_are_removed_and_the_rest_still_folds_into_every_row(filled_store, clock):
    clock.now = START + 5 * DAY
    run(filled_store, beat("held"))
    run(filled_store, claim("job", "l1"))
    clock.now = START + 8 * DAY
    run_cleanup(filled_store, events=7 * DAY)
    log = every(filled_store, Event)
    assert min(event.at for event in log) == START + 5 * DAY
    with filled_store.read() as reader:
        floor, last = reader.log_bounds(ACCOUNT)
    assert (floor, last) == (log[0].seq - 1, log[-1].seq)
    assert floor > 0
    snapshots = {event.subject for event in log if event.kind.endswith(".snapshot")}
    assert snapshots == {f"task:{name}" for name in ids(filled_store)}
    check_log(filled_store)


def test_a_truncated_log_continues(filled_store, clock):
    for day in (8, 16, 24):
        clock.now = START + day * DAY
        run_cleanup(filled_store, events=7 * DAY)
        check_log(filled_store)
    run(filled_store, take_this("later"))
    run(filled_store, complete("later"))
    check_log(filled_store)


def test_the_events_of_a_removed_row_may_be_truncated_in_the_middle(filled_store, clock):
    clock.now = START + 5 * DAY
    run_cleanup(filled_store, tasks=4 * DAY)
    assert {event.kind.partition(".")[2] for event in every(filled_store, Event) if event.at > START} <= REMOVAL_VERBS
    clock.now = START + 8 * DAY
    run_cleanup(filled_store, events=7 * DAY)
    check_log(filled_store)
    clock.now = START + 13 * DAY
    run_cleanup(filled_store, events=7 * DAY)
    assert not any(event.subject == "task:done" for event in every(filled_store, Event))
    check_log(filled_store)


def test_a_pass_removes_no_more_events_than_its_limit(filled_store, clock, monkeypatch):
    monkeypatch.setattr(retention, "EVENTS_PER_PASS", 4)
    clock.now = START + 8 * DAY
    run_cleanup(filled_store, events=7 * DAY)
    with filled_store.read() as reader:
        assert reader.log_bounds(ACCOUNT)[0] == 4
    check_log(filled_store)


def test_the_log_is_not_truncated_while_a_snapshot_could_not_be_written(filled_store, clock):
    clock.now = START + 8 * DAY
    before = every(filled_store, Event)
    Cleanup(filled_store, lambda commands: [None for _ in commands], Retention(tasks=0, names=0, events=7 * DAY)).run()
    assert every(filled_store, Event) == before


def test_a_removed_name_that_is_claimed_while_the_log_is_cut_still_folds(store, clock):
    """The claim comes after the snapshots were written and before the events are removed."""
    run(store, claim("job", "l1"))
    run(store, release("job", "l1"))
    clock.advance(31 * DAYS)
    run(store, RemoveRow(**BASE, key=("leases", ACCOUNT, "job"), before=clock.now))
    clock.advance(8 * DAYS)

    def run_all_then_claim(commands):
        written = transact(store, *commands) if commands else []
        if any(isinstance(command, WriteSnapshot) for command in commands):
            run(store, claim("job", "l2"))
        return written

    Cleanup(store, run_all_then_claim, Retention(tasks=0, names=0, events=7 * DAY)).run()
    assert [event.version for event in every(store, Event)] == [4]
    check_log(store)


def test_a_removed_name_that_another_server_claims_while_the_log_is_cut_still_folds(opened, clock):
    """The other server has read the last version from the log before its events are removed."""
    store, other = opened("postgres", clock), opened("postgres", clock)
    run(store, claim("job", "l1"))
    run(store, release("job", "l1"))
    clock.advance(31 * DAYS)
    run(store, RemoveRow(**BASE, key=("leases", ACCOUNT, "job"), before=clock.now))
    clock.advance(8 * DAYS)
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([claim("job", "l2").needs()])))
        claim("job", "l2").decide(view)
        run_cleanup(other, events=7 * DAY)
        transaction.save(view.changes(transaction.draw(1)))
    assert [event.version for event in every(store, Event)] == [4]
    check_log(store)


def test_old_events_are_removed_in_slices_and_the_rest_of_an_interrupted_removal_with_the_next(
    filled_store, clock, monkeypatch
):
    monkeypatch.setattr(sql_store, "ERASED_AT_ONCE", 3)
    if filled_store.name != "memory":  # as if the server had been killed after it raised the floor
        with filled_store.write() as (execute, _):
            execute(queries.RAISE_FLOOR, 4, ACCOUNT, 4)
    clock.now = START + 8 * DAY
    run_cleanup(filled_store, events=7 * DAY)
    assert min(event.at for event in every(filled_store, Event)) == clock.now
    check_log(filled_store)


def test_the_log_of_each_account_is_truncated_separately(store, clock):
    run(store, create("old", account="a"))
    clock.advance(5 * DAYS)
    run(store, create("new", account="b"))
    clock.advance(3 * DAYS)
    run_cleanup(store, events=7 * DAY)
    with store.read() as reader:
        assert (reader.log_bounds("a")[0], reader.log_bounds("b")[0]) == (1, 0)
        assert reader.log_accounts() == ["a", "b"]
    check_log(store)
