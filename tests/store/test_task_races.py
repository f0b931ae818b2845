"""Races of two transactions for the same tasks on PostgreSQL: never both win."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager

import pytest
from msgspec.structs import replace

from holdfast.core.account import Account
from holdfast.core.errors import InvalidTransition, TaskClaimed
from holdfast.core.task import CLAIMED, DEAD, Task
from holdfast.core.task.queue import Queue
from holdfast.engine.batches.locked_rows import LOCK_RETRY_SECONDS
from holdfast.engine.command import Once, Replayed
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs.tasks.claiming import Claimed, Empty
from holdfast.engine.view import View
from holdfast.store.contract import Rerun, RowsLocked
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.postgres import PostgresStore
from tests.support import ACCOUNT, Keep, check_log, every, idle_lane, put, run
from tests.task_commands import a_claimed, a_task, create, fail, requeue, take, take_this

QUEUE = AllNeeds.of([Needs(ready=((ACCOUNT, "work", 2),))])


def ids(view):
    found = []
    while (task := view.next_ready(ACCOUNT, ("work",))) is not None:
        found.append(task.id)
        view.put(replace(task, state=CLAIMED, ready=False), "claimed")
    return found


def ticket(command):
    return Ticket(command, Keep())


class RecordingStore:
    """A store that records each transaction and runs a callback after the first."""

    def __init__(self, store, noted, after_first):
        self._store = store
        self._noted = noted
        self._after_first = after_first

    @contextmanager
    def transaction(self, lane=0):
        try:
            with self._store.transaction(lane) as transaction:
                yield transaction
        finally:
            self._noted.append(lane)
            if len(self._noted) == 1:
                self._after_first()


@pytest.fixture
def other(postgres_store, database, clock):
    """A second server on the same database."""
    store = PostgresStore(database, clock)
    yield store
    store.close()


def test_a_locked_ready_task_is_skipped_and_reported(postgres_store, other):
    put(postgres_store, *(a_task(f"t{number}") for number in range(3)))
    with postgres_store.transaction() as first, other.transaction() as second:
        assert ids(View(first.load(QUEUE))) == ["t0", "t1"]
        view = View(second.load(QUEUE))
        assert ids(view) == ["t2"]
        assert view.has_locked_tasks(second.count_claimable(QUEUE))


def test_no_skipped_task_is_reported_when_there_is_none(postgres_store, other):
    put(postgres_store, a_task("t1"))
    with postgres_store.transaction() as first:
        view = View(first.load(QUEUE))
        assert not view.has_locked_tasks(first.count_claimable(QUEUE))
    with other.transaction() as second:
        mixed = AllNeeds.of([Needs(ready=((ACCOUNT, "", 2), (ACCOUNT, "none", 5)))])
        view = View(second.load(mixed))
        assert not view.has_locked_tasks(second.count_claimable(mixed))
        assert ids(view) == ["t1"]


@pytest.mark.parametrize("setting", ["max_running", "max_running_per_key"])
@pytest.mark.parametrize("second_type", ["work", ""])
def test_claims_of_a_queue_with_settings_follow_each_other(postgres_store, other, second_type, setting):
    """The second one waits until the first has ended: what it counts then is exact."""
    rows = [a_task(task_id, concurrency_key="k") for task_id in ("t1", "t2")]
    put(postgres_store, *rows, Queue(ACCOUNT, "work", **{setting: 1}))
    with postgres_store.transaction() as first:
        view = View(first.load(claim_of("work")))
        assert ids(view) == ["t1"]
        with pytest.raises(RowsLocked), other.transaction() as second:
            second.load(claim_of(second_type), 0.05)
        first.save(view.changes([]))
    with other.transaction() as second:
        assert ids(View(second.load(claim_of(second_type)))) == []


def test_a_locked_task_of_a_queue_with_a_limit_for_each_key_is_skipped_and_reported(postgres_store, other):
    rows = [a_task(f"t{number}", concurrency_key=f"k{number}") for number in range(3)]
    put(postgres_store, *rows, Queue(ACCOUNT, "work", max_running_per_key=1))
    with postgres_store.transaction() as first, other.transaction() as second:
        first.load(AllNeeds.of([Needs(rows=(rows[0].key,))]))
        view = View(second.load(claim_of("work")))
        assert view.has_locked_tasks(second.count_claimable(claim_of("work")))
        assert ids(view) == ["t1", "t2"]


@pytest.mark.parametrize("task_type", ["work", ""])
def test_a_locked_task_without_a_key_is_reported_although_its_queue_has_a_limit_for_each_key(
    postgres_store, other, task_type
):
    put(postgres_store, a_task("t1"), a_task("t2", concurrency_key="k"), a_claimed("t3", concurrency_key="k"))
    put(postgres_store, Queue(ACCOUNT, "work", max_running_per_key=1))
    with postgres_store.transaction() as first, other.transaction() as second:
        first.load(AllNeeds.of([Needs(rows=(a_task("t1").key,))]))
        view = View(second.load(claim_of(task_type)))
        assert view.has_locked_tasks(second.count_claimable(claim_of(task_type)))
    with other.transaction() as second:
        view = View(second.load(claim_of(task_type)))
        assert ids(view) == ["t1"]
        assert not view.has_locked_tasks(second.count_claimable(claim_of(task_type)))


@pytest.mark.parametrize("requires", [None, "gpu"])
def test_a_locked_task_is_reported_to_a_claim_of_any_type_beside_a_queue_with_settings(postgres_store, other, requires):
    rows = [a_task(f"t{number}", requires=requires) for number in range(2)]
    put(postgres_store, *rows, a_task("held back", type="paused"), Queue(ACCOUNT, "paused", paused=True))
    requiring = ((ACCOUNT, "", requires, ""),) if requires else ()
    claim = AllNeeds.of([Needs(ready=((ACCOUNT, "", 2),), requiring=requiring, queues=((ACCOUNT, ""),))])
    with postgres_store.transaction() as first, other.transaction() as second:
        first.load(AllNeeds.of([Needs(rows=(rows[0].key,))]))
        view = View(second.load(claim))
        assert view.next_ready(ACCOUNT, (), requires or "").id == "t1"
        assert view.has_locked_tasks(second.count_claimable(claim))
    with other.transaction() as second:
        view = View(second.load(claim))
        assert not view.has_locked_tasks(second.count_claimable(claim))


@pytest.mark.parametrize("requires", [None, "gpu"])
def test_a_claim_of_any_type_runs_again_if_the_first_settings_are_made_while_it_loads(postgres_store, other, requires):
    """It has read the queues before, and finds no task of any type after that."""
    account = Account(ACCOUNT, ACCOUNT)
    put(postgres_store, a_task("t1", requires=requires), account)
    requiring = ((ACCOUNT, "", requires, ""),) if requires else ()
    claim = Needs(rows=(account.key,), ready=((ACCOUNT, "", 1),), requiring=requiring, queues=((ACCOUNT, ""),))
    needs = AllNeeds.of([claim])

    def load():
        with other.transaction() as second:
            view = View(second.load(needs, LOCK_RETRY_SECONDS))
            task = view.next_ready(ACCOUNT, (), requires or "")
            return task, view.has_locked_tasks(second.count_claimable(needs))

    with ThreadPoolExecutor(1) as pool:
        with postgres_store.transaction() as first:
            view = View(first.load(AllNeeds.of([Needs(rows=(account.key,))])))
            view.put(Queue(ACCOUNT, "work"), "opened")
            loading = pool.submit(load)  # waits for the account, whose lock comes after those of the queues
            assert not wait([loading], 0.3).done
            first.save(view.changes([]))
        assert loading.result(10) == (None, True)
    task, has_locked = load()
    assert (task.id, has_locked) == ("t1", False)


def claim_of(task_type):
    """What a claim of a queue needs, or of any."""
    return AllNeeds.of([Needs(ready=((ACCOUNT, task_type, 2),), queues=((ACCOUNT, task_type),))])


def test_skipped_tasks_that_require_capabilities_are_reported(postgres_store, other):
    put(postgres_store, *(a_task(f"t{number}", requires="gpu") for number in range(3)))
    able = AllNeeds.of([Needs(ready=((ACCOUNT, "work", 2),), requiring=((ACCOUNT, "work", "cpu,gpu", ""),))])
    with postgres_store.transaction() as first, other.transaction() as second:
        assert sorted(key[-1] for key in first.load(able).rows) == ["t0", "t1"]
        view = View(second.load(able))
        assert view.next_ready(ACCOUNT, ("work",), "gpu").id == "t2"
        assert view.has_locked_tasks(second.count_claimable(able))


def test_a_task_locked_by_its_id_is_skipped(postgres_store, other):
    put(postgres_store, a_task("t1"), a_task("t2"))
    with postgres_store.transaction() as first, other.transaction() as second:
        first.load(AllNeeds.of([Needs(rows=(a_task("t1").key,))]))
        assert ids(View(second.load(QUEUE))) == ["t2"]


@pytest.mark.parametrize(
    "needs",
    [
        Needs(unique_keys=((ACCOUNT, "k"),)),
        Needs(same_key_as=((ACCOUNT, "t1"),)),
        Needs(holdings=((ACCOUNT, "s1"),)),
        Needs(rows=(a_task("t1").key,), unique_keys=((ACCOUNT, "other"),)),
    ],
    ids=["its unique key", "the unique key of a task", "its session", "its id beside a unique key"],
)
def test_a_task_is_locked_however_a_batch_finds_it(postgres_store, other, needs):
    """A dependent that is created while the task it needs completes would else wait for ever."""
    row = a_claimed("t1", unique_key="k", session="s1")
    put(postgres_store, row)
    with postgres_store.transaction() as first:
        assert row.key in first.load(AllNeeds.of([needs])).rows
        with pytest.raises(RowsLocked), other.transaction() as second:
            second.load(AllNeeds.of([Needs(rows=(row.key,))]), 0.05)


def test_a_locked_task_that_is_due_is_skipped(postgres_store, other, clock):
    due = clock.now
    put(postgres_store, *(a_task(f"t{number}", ready=False, scheduled_at=due) for number in range(2)))
    with postgres_store.transaction() as first, other.transaction() as second:
        first.load(AllNeeds.of([Needs(rows=(a_task("t0").key,))]))
        assert ids(View(second.load(QUEUE))) == ["t1"]


def test_a_claim_that_skipped_tasks_runs_again_before_it_answers_empty(postgres_store, other):
    """The one ready task is locked by a batch that then does nothing with it."""
    put(postgres_store, a_task("t1"))
    loads = []
    with ExitStack() as blocking:
        blocking.enter_context(postgres_store.transaction()).load(QUEUE)
        committed = idle_lane(RecordingStore(other, loads, blocking.close))._attempt([ticket(take("work"))])
    assert isinstance(committed.replies[0][1], Claimed)
    assert len(loads) == 2


def test_a_claim_that_always_skips_tasks_answers_with_those_it_got(postgres_store, other):
    put(postgres_store, a_task("t1"), a_task("t2"))
    with postgres_store.transaction() as blocking:
        blocking.load(AllNeeds.of([Needs(rows=(a_task("t1").key,))]))
        committed = idle_lane(other)._attempt([ticket(take("work", limit=2))])
        assert [taken.task.id for taken in committed.replies[0][1].taken] == ["t2"]
        committed = idle_lane(other)._attempt([ticket(take("work"))])
        assert isinstance(committed.replies[0][1], Empty)


def test_a_duplicate_claim_waits_for_the_first_and_gets_its_answer(postgres_store, other):
    """The first has locked the only ready task; a duplicate that skips it would find no task."""
    put(postgres_store, a_task("t1"))
    once = Once("key-1", "body-1", lambda outcome: (200, outcome.taken[0].task.id.encode()))
    first, duplicate = take("work", once=once), take("work", seed="s2", once=once)
    with ThreadPoolExecutor() as pool:
        with postgres_store.transaction() as transaction:
            view = View(transaction.load(AllNeeds.of([first.all_needs()])))
            outcome = first.run(view)
            view.remember(first.remember(outcome, view.now))
            waiting = pool.submit(idle_lane(other)._attempt, [ticket(duplicate)], LOCK_RETRY_SECONDS)
            wait([waiting], timeout=0.3)
            assert not waiting.done()
            transaction.save(view.changes(transaction.draw(view.tokens_drawn)))
        assert waiting.result(10).replies[0][1] == Replayed(200, b"t1")
    check_log(postgres_store)


def test_the_second_of_two_batches_that_found_a_unique_key_free_runs_again(postgres_store, other):
    command = create("late", unique_key="k")
    with pytest.raises(Rerun), postgres_store.transaction() as late:
        view = View(late.load(AllNeeds.of([command.all_needs()])))
        command.run(view)
        run(other, create("early", unique_key="k"))
        late.save(view.changes([]))
    assert [task.id for task in every(postgres_store, Task)] == ["early"]
    assert run(postgres_store, command).task.id == "early"
    check_log(postgres_store)


def test_requeueing_while_another_batch_takes_the_unique_key_runs_again_and_is_refused(postgres_store, other):
    run(postgres_store, create("t1", unique_key="k", max_attempts=1))
    run(postgres_store, take("work"))
    run(postgres_store, fail("t1"))
    command = requeue("t1")
    with pytest.raises(Rerun), postgres_store.transaction() as late:
        view = View(late.load(AllNeeds.of([command.all_needs()])))
        command.run(view)
        run(other, create("t2", unique_key="k"))
        late.save(view.changes([]))
    with pytest.raises(InvalidTransition):
        run(postgres_store, command)
    assert [(task.id, task.state) for task in every(postgres_store, Task)] == [("t1", DEAD), ("t2", "pending")]
    check_log(postgres_store)


def test_a_claim_by_id_waits_for_the_lock_of_its_task(postgres_store, other):
    put(postgres_store, a_task("t1"))
    with ThreadPoolExecutor(1) as pool, postgres_store.transaction() as first:
        view = View(first.load(AllNeeds.of([take_this("t1").all_needs()])))
        take_this("t1").run(view)
        changes = view.changes(first.draw(1))
        late = pool.submit(run, other, take_this("t1", seed="late"))
        assert not wait([late], 0.2).done
        first.save(changes)
    assert isinstance(late.exception(5), TaskClaimed)
