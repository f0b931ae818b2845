"""Usage for plans: tasks created in a cycle and tasks held, exact until the transaction ends."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import lease as leases
from holdfast.core.plan import CYCLE, Usage
from holdfast.core.task import Task
from holdfast.engine.view import View
from holdfast.store.contract import Rerun
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.postgres import PostgresStore
from tests.store.task_rows import accounts, task_lists
from tests.store.test_task_queries_match_rules import with_examples
from tests.support import ACCOUNT, START, empty, every, load_view, put
from tests.task_commands import a_claimed, a_task

numbers = itertools.count()
THREADS, ROUNDS, LIMIT = 8, 6, 25

cycles = st.sampled_from([START, START + CYCLE, START + 2 * CYCLE])
charges = st.lists(st.tuples(accounts, cycles), min_size=1, max_size=5)


@pytest.fixture
def fresh(store):
    """Empties the store before each example."""

    def fill(*rows):
        empty(store)
        if rows:
            put(store, *rows)
        return store

    return fill


def charge(store, *charged):
    """Create a task for each (account, cycle), all in one batch."""
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(usage=tuple({account for account, _ in charged}))])))
        for account, cycle in charged:
            view.charge(account, cycle)
            view.put(a_task(f"t{next(numbers)}", account=account), "created")
            view.keep()
        transaction.save(view.changes([]))


def used(store, account=ACCOUNT):
    """The usage that readers and transactions see, which must be the same."""
    with store.read() as reader:
        read, _ = reader.usage(account)
    assert load_view(store, usage=(account,)).usage(account) == read
    return read


def held(store, account=ACCOUNT):
    with store.read() as reader:
        _, read = reader.usage(account)
    assert load_view(store, usage=(account,)).held_tasks(account) == read
    return read


# -- generated ---------------------------------------------------------------------------------------------------


@with_examples
@given(rows=task_lists, account=accounts)
def test_held_tasks_are_those_that_core_calls_live(fresh, rows, account):
    live = sum(row.account == account and leases.is_live(row, START) for row in rows)
    assert held(fresh(*rows), account) == live


@with_examples
@given(batches=st.lists(charges, max_size=4))
def test_usage_is_the_sum_of_the_charges(fresh, batches):
    store = fresh()
    total = dict.fromkeys("ab", Usage())
    for batch in batches:
        charge(store, *batch)
        for account in "ab":
            charged = sorted(cycle for owner, cycle in batch if owner == account)
            # All tasks of one batch are counted in the latest of its cycles.
            latest = max(charged, default=0)
            total[account] = total[account].plus(Usage(latest, charged.count(latest)))
    assert {account: used(store, account) for account in "ab"} == total


# -- within a batch ----------------------------------------------------------------------------------------------


def test_a_batch_sees_its_own_charges(store):
    charge(store, (ACCOUNT, START))
    view = load_view(store, usage=(ACCOUNT,))
    view.charge(ACCOUNT, START)
    assert view.usage(ACCOUNT) == Usage(START, 2)
    assert used(store) == Usage(START, 1)


def test_usage_moves_to_a_later_cycle_and_never_back(store):
    charge(store, (ACCOUNT, START), (ACCOUNT, START))
    charge(store, (ACCOUNT, START + CYCLE))
    assert used(store) == Usage(START + CYCLE, 1)
    charge(store, (ACCOUNT, START))
    assert used(store) == Usage(START + CYCLE, 2)


def test_an_undone_command_charges_nothing(store):
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(usage=(ACCOUNT,))])))
        view.charge(ACCOUNT, START)
        view.put(a_task("kept"), "created")
        view.keep()
        for number in range(2):
            view.charge(ACCOUNT, START)
            view.put(a_task(f"undone-{number}"), "created")
        assert view.usage(ACCOUNT).created == 3
        view.undo()
        assert view.usage(ACCOUNT).created == 1
        transaction.save(view.changes([]))
    assert used(store) == Usage(START, 1)
    assert [task.id for task in every(store, Task)] == ["kept"]


def test_a_rewound_command_charges_nothing_although_it_was_accepted(store):
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(usage=(ACCOUNT,))])))
        mark = view.mark()
        view.charge(ACCOUNT, START)
        view.keep()
        view.rewind(mark)
        assert view.usage(ACCOUNT).created == 0
        transaction.save(view.changes([]))
    assert used(store) == Usage()


def test_an_abandoned_transaction_charges_nothing(store):
    with pytest.raises(ZeroDivisionError), store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(usage=(ACCOUNT,))])))
        view.charge(ACCOUNT, START)
        view.keep()
        transaction.save(view.changes([]))
        raise ZeroDivisionError
    assert used(store) == Usage()


def test_charges_are_saved_although_usage_was_not_loaded(store):
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs()])))
        view.charge(ACCOUNT, START)
        view.put(a_task(), "created")
        view.keep()
        transaction.save(view.changes([]))
    assert used(store) == Usage(START, 1)


def test_claims_and_endings_change_the_held_count_at_once(store, clock):
    put(store, a_claimed("t1"), a_task("t2"))
    view = load_view(store, usage=(ACCOUNT,), rows=((Task.table, ACCOUNT, "t1"), (Task.table, ACCOUNT, "t2")))
    view.put(a_claimed("t2"), "claimed")
    assert view.held_tasks(ACCOUNT) == 2
    view.undo()
    assert view.held_tasks(ACCOUNT) == 1
    view.put(a_task("t1"), "released")
    assert view.held_tasks(ACCOUNT) == 0


def test_a_lapsed_task_is_not_counted_as_held_before_the_sweep(store, clock):
    put(store, a_claimed("t1", ends=START + 10), a_claimed("t2", ends=START + 11))
    for moment, live in ((START + 9, 2), (START + 10, 1), (START + 11, 0)):
        clock.now = moment
        assert held(store) == live
    assert [task.state for task in every(store, Task)] == ["claimed", "claimed"]


# -- concurrency --------------------------------------------------------------------------------------------------


def test_two_servers_never_charge_beyond_the_limit(database, postgres_store):
    """Each thread charges only while the count it loaded is below the limit: together they reach it exactly."""
    second = PostgresStore(database)
    second.open()

    def create(place):
        store = (postgres_store, second)[place % 2]
        made = 0
        while made < ROUNDS:
            try:
                with store.transaction(place) as transaction:
                    view = View(transaction.load(AllNeeds.of([Needs(usage=(ACCOUNT,))])))
                    if view.usage(ACCOUNT).created >= LIMIT:
                        return made
                    view.charge(ACCOUNT, START)
                    view.put(a_task(f"t{place}-{made}"), "created")
                    view.keep()
                    transaction.save(view.changes([]))
            except Rerun:
                continue
            made += 1
        return made

    with ThreadPoolExecutor(THREADS) as pool:
        made = list(pool.map(create, range(THREADS)))
    second.close()
    assert sum(made) == LIMIT
    assert used(postgres_store) == Usage(START, LIMIT)
    assert len(every(postgres_store, Task)) == LIMIT
