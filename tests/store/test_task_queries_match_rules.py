"""For tasks: each WHERE and each ORDER BY selects what its rule in core selects, over generated rows."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.holdings.held_by import is_held_by
from holdfast.core.lease import ELECTION, JOB, Lease, is_live
from holdfast.core.session import Session
from holdfast.core.task import CLAIMED, DEAD, LIVE_STATES, PENDING, Task
from holdfast.core.task.capabilities import combine, may_take
from holdfast.core.task.queue import Queue
from holdfast.engine.view import View
from holdfast.store.concurrency_keys import WINDOW
from holdfast.store.contract import TaskPath
from holdfast.store.contract.reads import HeldCounts
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.rows import Rows
from tests.proof_size import FULL
from tests.store.task_rows import accounts, instants, keyed_lists, queues, task_lists, types
from tests.store.test_queries_match_rules import lease_lists, session_lists
from tests.support import START, empty, load_view, put, set_window

EXAMPLES = 500 if FULL else 4
QUEUES = [("x",), ("y",), ("x", "y"), ()]


@pytest.fixture
def fresh(sql_store):
    """Empties the store before each example."""

    def fill(*rows):
        empty(sql_store)
        if rows:
            put(sql_store, *rows)
        return sql_store

    return fill


def with_examples(test):
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    phases = [phase for phase in Phase if phase is not Phase.explain]  # explaining takes minutes
    return settings(max_examples=EXAMPLES, suppress_health_check=checks, phases=phases)(test)


named = st.sampled_from([None, "agent"])
named_sessions = st.lists(
    st.tuples(session_lists, named).map(lambda pair: [replace(row, name=pair[1]) for row in pair[0]]), max_size=2
).map(lambda lists: list({row.key: row for rows in lists for row in rows}.values()))


def drained(view, account, names, capabilities=""):
    """The tasks that claims would get, in order."""
    found = []
    while (task := view.next_ready(account, names, capabilities)) is not None:
        found.append(task.id)
        view.put(replace(task, state=CLAIMED, ready=False), "claimed")
    return found


def claimable(rows, account, names, capabilities=""):
    queue = [row for row in rows if row.account == account and (not names or row.type in names)]
    queue = [row for row in queue if may_take(capabilities, row.requires)]
    return [row.id for row in sorted(queue, key=tasks.queue_order) if tasks.is_claimable(row, START)]


def load_queues(store, account, names, limit, *claims):
    """A view of the first tasks for claims of these queues with (capabilities, session)."""
    types = names or ("",)
    return load_view(
        store,
        ready=tuple((account, name, limit) for name in types),
        requiring=tuple((account, name, *claim) for name in types for claim in claims),
        rows=tuple((Session.table, account, session) for _, session in claims if session),
    )


@with_examples
@given(rows=task_lists, account=accounts, names=st.sampled_from(QUEUES))
def test_loaded_tasks_are_those_that_core_calls_claimable_in_its_order(fresh, rows, account, names):
    view = load_queues(fresh(*rows), account, names, 100)
    assert drained(view, account, names) == claimable(rows, account, names)


@with_examples
@given(rows=queues, names=st.sampled_from(QUEUES), limit=st.integers(1, 3))
def test_the_first_tasks_of_a_queue_are_loaded_also_if_they_have_just_come_due(fresh, rows, names, limit):
    view = load_queues(fresh(*rows), "a", names, limit)
    assert drained(view, "a", names)[:limit] == claimable(rows, "a", names)[:limit]


ABLE = [("", ""), ("gpu", ""), ("cpu,gpu", ""), ("", "s1"), ("repo:shop", "s1"), ("cpu,gpu,repo:shop", ""), ("a", "")]


@with_examples
@given(rows=queues, names=st.sampled_from(QUEUES), limit=st.integers(1, 3), claim=st.sampled_from(ABLE))
def test_the_first_tasks_that_a_worker_may_take_are_loaded(fresh, rows, names, limit, claim):
    agent = Session("a", "s1", principal="p", opened_at=START, expires_at=START + 1, capabilities="gpu")
    able = combine(claim[0], agent.capabilities if claim[1] else None)
    view = load_queues(fresh(*rows, agent), "a", names, limit, claim, ("a", ""))
    assert drained(view, "a", names, able)[:limit] == claimable(rows, "a", names, able)[:limit]


@with_examples
@given(
    rows=queues,
    names=st.sampled_from(QUEUES),
    limit=st.integers(1, 3),
    able=st.sampled_from(["", "gpu", "cpu,gpu,repo:shop"]),
    held=st.lists(st.sampled_from(["k1", "k2"]), max_size=3),
    most=st.integers(0, 3),
    loaded=st.integers(0, 2),
)
@pytest.mark.parametrize("window", [2, WINDOW])
def test_the_first_tasks_whose_keys_have_room_are_loaded(
    fresh, monkeypatch, window, *, rows, names, limit, able, held, most, loaded
):
    """Also if they are behind those that are looked through first, and if the batch has loaded tasks that run."""
    if window < WINDOW:
        set_window(monkeypatch, window)
    running = [Task("a", f"h{number}", type="x", state=CLAIMED, concurrency_key=key) for number, key in enumerate(held)]
    store = fresh(*rows, *running, Queue("a", "x", max_running_per_key=most))
    types = names or ("",)
    view = load_view(
        store,
        ready=tuple(("a", name, limit) for name in types),
        requiring=tuple(("a", name, able, "") for name in types),
        queues=tuple(("a", name) for name in types),
        rows=tuple(row.key for row in running[:loaded]),
    )
    assert drained(view, "a", names, able)[:limit] == with_room(rows, held, names, able, most)[:limit]


def with_room(rows, held, names, able, most):
    """The claimable tasks that claims would get in order, of each key in the queue x no more than the limit."""
    by_id, used, found = {row.id: row for row in rows}, Counter(held), []
    for task_id in claimable(rows, "a", names, able):
        row = by_id[task_id]
        if row.type == "x" and row.concurrency_key is not None:
            if used[row.concurrency_key] >= most:
                continue
            used[row.concurrency_key] += 1
        found.append(task_id)
    return found


@with_examples
@given(rows=queues, names=st.sampled_from(QUEUES), limit=st.integers(1, 3), claim=st.sampled_from(ABLE))
def test_what_another_server_could_have_locked_is_counted_as_core_does(fresh, rows, names, limit, claim):
    store, types = fresh(*rows), names or ("",)
    needs = AllNeeds.of(
        [
            Needs(
                ready=tuple(("a", name, limit) for name in types),
                requiring=tuple(("a", name, claim[0], "") for name in types),
            )
        ]
    )
    with store.transaction() as transaction:
        view = View(transaction.load(needs))
        counted = transaction.count_claimable(needs)
    if counted is not None:
        assert not view.has_locked_tasks(counted)
        assert View(Rows(START, {})).has_locked_tasks(counted) == bool(claimable(rows, "a", names, claim[0]))


@with_examples
@given(rows=task_lists, held=lease_lists, open_sessions=session_lists, limit=st.integers(1, 20))
def test_due_tasks_are_those_whose_core_deadline_has_passed(fresh, rows, held, open_sessions, limit):
    store = fresh(*rows, *held, *open_sessions)
    overdue = [(tasks.deadline(row), row.key) for row in rows if (tasks.deadline(row) or START + 1) <= START]
    overdue += [(row.expires_at, row.key) for row in held if leases.is_due(row, START)]
    overdue += [(row.expires_at, row.key) for row in open_sessions if sessions.is_due(row, START)]
    with store.read() as reader:
        assert reader.due(limit) == [key for _, key in sorted(overdue)][:limit]


@with_examples
@given(rows=task_lists)
def test_the_next_deadline_is_the_first_core_deadline_of_a_task(fresh, rows):
    with fresh(*rows).read() as reader:
        found = [tasks.deadline(row) for row in rows if tasks.deadline(row) is not None]
        assert reader.next_deadline() == min(found, default=None)


@with_examples
@given(rows=task_lists, held=lease_lists, open_sessions=named_sessions, moment=instants)
def test_tasks_held_at_an_instant_are_those_that_core_calls_live_then(fresh, rows, held, open_sessions, moment):
    live = [row.key for row in rows if leases.is_live(row, moment)]
    live += [row.key for row in held if leases.counts_toward_limit(row, JOB, moment)]
    live += [row.key for row in open_sessions if row.name is not None and sessions.is_live(row, moment)]
    with fresh(*rows, *held, *open_sessions).read() as reader:
        assert reader.held_at(moment) == sorted(live)


@with_examples
@given(rows=task_lists, moments=st.lists(st.integers(0, 4), min_size=14, max_size=14), dead=st.booleans())
def test_tasks_finished_before_an_instant_are_those_that_core_calls_purgeable(fresh, clock, rows, moments, dead):
    store, before = fresh(), START + 3
    stamped = [replace(row, changed_at=START + at) for row, at in zip(rows, sorted(moments), strict=False)]
    for row in stamped:
        clock.now = row.changed_at
        put(store, row)
    old = [row for row in stamped if tasks.is_purgeable(row, before) and (dead or row.state != DEAD)]
    with store.read() as reader:
        found = {account: reader.finished_before(account, before, 100, dead=dead) for account in "ab"}
        few = {account: reader.finished_before(account, before, 2, dead=dead) for account in "ab"}
    clock.now = START
    for account in "ab":
        at = {row.key: row.changed_at for row in old if row.account == account}
        assert sorted(found[account]) == sorted(at)
        assert [at[key] for key in found[account]] == sorted(at.values())
        assert [at[key] for key in few[account]] == sorted(at.values())[:2]


@with_examples
@given(rows=keyed_lists())
def test_the_task_under_a_unique_key_is_the_one_that_core_calls_live(fresh, rows):
    store = fresh(*rows)
    for account in "ab":
        for key in ("k1", "k2"):
            mine = [row for row in rows if (row.account, row.unique_key) == (account, key)]
            alive = [row.id for row in mine if row.state in LIVE_STATES]
            found = load_view(store, unique_keys=((account, key),)).live_task_under(account, key)
            assert ([] if found is None else [found.id]) == alive
            for row in mine:
                found = load_view(store, same_key_as=((account, row.id),)).live_task_under(account, key)
                assert ([] if found is None else [found.id]) == alive


@with_examples
@given(rows=task_lists)
def test_the_tasks_of_a_session_are_those_it_holds(fresh, rows):
    store = fresh(*rows)
    for account in "ab":
        for session in ("s1", "s2"):
            mine = sorted(row.id for row in rows if (row.account, row.session) == (account, session))
            view = load_view(store, holdings=((account, session),))
            assert [row.id for row in view.tasks_of(account, session)] == mine
            with store.read() as reader:
                assert [row.id for row in reader.holdings(Task, (account, session), "", 1_000)] == mine


@with_examples
@given(rows=task_lists, held=lease_lists, opened=named_sessions, after=st.sampled_from(["", "a", "s1", "t01"]))
def test_what_a_principal_holds_is_what_core_calls_held_by_it(fresh, rows, held, opened, after):
    labels = [None, "agent", "w1"]
    rows = [
        replace(row, principal=f"p{n % 2 + 1}", worker=labels[n % 3]) if row.state == CLAIMED else row
        for n, row in enumerate(rows)
    ]
    held = [replace(row, owner=labels[n % 3]) for n, row in enumerate(held)]
    opened = [row if row.ended_at is not None else replace(row, ended_how=None) for row in opened]
    store = fresh(*rows, *held, *opened)
    for row_type, every_row in ((Task, rows), (Lease, held), (Session, opened)):
        for account, principal, owner in itertools.product("ab", ("p1", "p2", "p3"), (None, "agent", "w1")):
            mine = [row for row in every_row if row.account == account and is_held_by(row, principal, START, owner)]
            wanted = sorted((row.id for row in mine if row.id.encode() > after.encode()), key=str.encode)
            with store.read() as reader:
                for limit, max_bytes in ((100, None), (100, 10**9), (2, 10**9)):
                    found = reader.held_by(row_type, (account, principal), after, limit, max_bytes, owner=owner)
                    assert [row.id for row in found] == wanted[:limit]


@with_examples
@given(rows=task_lists, held=lease_lists)
def test_what_an_account_holds_is_counted_as_core_counts_it(fresh, rows, held):
    store = fresh(*rows, *held)
    for account in "ab":
        leases = [row for row in held if row.account == account and is_live(row, START) and row.kind != ELECTION]
        claimed = [row for row in rows if row.account == account and row.state == CLAIMED and is_live(row, START)]
        with store.read() as reader:
            assert reader.held_counts(account) == HeldCounts(len(leases), 0, len(claimed))
            dead = [row for row in rows if (row.account, row.state) == (account, DEAD)]
            assert reader.count_resolved(account, 100) == sum(row.resolved_at is not None for row in dead)
            assert reader.count_resolved(account, 1) <= 1


paths = st.builds(
    TaskPath,
    type=st.none() | types,
    state=st.none() | st.sampled_from(tasks.STATES),
    tag=st.none() | st.none() | st.sampled_from(["red", "green"]),
    unique_key=st.none() | st.none() | st.sampled_from(["k1", "k3"]),
)


pages = st.tuples(st.sampled_from(["~", "t50", "t00"]), st.integers(1, 8))


@with_examples
@given(rows=keyed_lists(), account=accounts, path=paths, page=pages)
def test_a_list_along_any_index_equals_a_plain_filter_newest_first(fresh, rows, account, path, page):
    def wanted(row):
        if path.tag is not None:
            return row.tag == path.tag
        if path.unique_key is not None:
            return row.unique_key == path.unique_key
        return path.type in {None, row.type} and path.state in {None, row.state}

    before, limit = page
    found = sorted((row.id for row in rows if row.account == account and row.id < before and wanted(row)), reverse=True)
    with fresh(*rows).read() as reader:
        assert [row.id for row in reader.tasks(account, path, before, limit)] == found[:limit]


@with_examples
@given(rows=task_lists)
def test_the_oldest_ready_task_is_found_in_any_account_and_priority(fresh, rows):
    rows = [replace(row, ready=row.ready and row.state == PENDING) for row in rows]  # only pending tasks are in a queue
    with fresh(*rows).read() as reader:
        assert reader.totals().oldest_ready == tasks.longest_wait(rows, START)
