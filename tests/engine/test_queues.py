"""Queues with settings: nothing is claimed from a paused one, and never more than the limit run."""

from __future__ import annotations

import json
import random
import threading

import pytest

from holdfast.core.errors import NotYetClaimable
from holdfast.core.event import Event
from holdfast.core.row import SECOND
from holdfast.core.task import CLAIMED
from holdfast.core.task.queue import Queue
from holdfast.engine.batches import transaction
from holdfast.engine.verbs.queues import ChangeQueue, OpenQueue
from holdfast.engine.verbs.tasks.claiming import Claimed
from holdfast.engine.waiting.tasks import TaskWaiters
from tests.proof_size import sized
from tests.support import ACCOUNT, Futures, check_log, every, run, transact, wait_until
from tests.task_commands import (
    BASE,
    LEASE,
    cancel,
    complete,
    create,
    fail,
    offer_task,
    release_task,
    sweep,
    take,
    take_this,
)


def set_queue(task_type="work", **changes):
    """The two commands by which the settings of a queue change."""
    return [OpenQueue(**BASE, type=task_type), ChangeQueue(**BASE, type=task_type, changes=changes)]


def limit(store, task_type="work", **changes):
    for command in set_queue(task_type, **changes):
        outcome = run(store, command)
    return outcome


def taken(outcome):
    """The ids of the tasks that a claim got."""
    return [each.task.id for each in outcome.taken] if isinstance(outcome, Claimed) else type(outcome).__name__


def test_settings_are_a_row_with_events(store):
    state = limit(store, paused=True, max_running=3)
    assert (state.queue.paused, state.queue.max_running, state.running) == (True, 3, 0)
    assert every(store, Queue) == [state.queue]
    assert limit(store, paused=True).queue == state.queue
    assert [event.kind for event in every(store, Event)] == ["queue.opened", "queue.changed"]
    check_log(store)


@pytest.mark.parametrize("types", [("work",), ()])
@pytest.mark.parametrize("before", [{"paused": True}, {"max_running": 0}])
def test_a_claim_in_the_batch_that_opens_its_queue_gets_a_task(store, before, types):
    limit(store, **before)
    run(store, create("t1"))
    opened = ChangeQueue(**BASE, type="work", changes={"paused": False, "max_running": None})
    _, claimed = transact(store, opened, take(*types))
    assert taken(claimed) == ["t1"]


@pytest.mark.parametrize("types", [("work",), ()])
@pytest.mark.parametrize("of_key", [None, 1])
def test_a_claim_in_the_batch_that_ends_a_task_of_its_full_queue_gets_the_next(store, of_key, types):
    limit(store, max_running=1, max_running_per_key=of_key)
    transact(store, create("t1"), create("t2"), create("t3", concurrency_key="k"), take("work"))
    _, claimed = transact(store, complete("t1"), take(*types, seed="s2"))
    assert taken(claimed) == ["t2"]


@pytest.mark.parametrize("types", [("work",), ()])
@pytest.mark.parametrize("able", [{}, {"requires": "gpu"}], ids=["", "gpu"])
@pytest.mark.parametrize("ends", ["cancelled", "overdue"])
def test_a_task_that_leaves_its_queue_hides_no_other_of_its_key_behind_tasks_of_full_keys(
    store, clock, types, able, ends
):
    limit(store, max_running_per_key=1)
    transact(store, create("f", concurrency_key="full"), take("work"))
    transact(store, *(create(f"f{number}", concurrency_key="full", **able) for number in range(5)))
    first = {"deadline_at": clock.now + SECOND} if ends == "overdue" else {}
    transact(store, create("t1", concurrency_key="k", **able, **first), create("t2", concurrency_key="k", **able))
    clock.advance(1)
    before = [cancel("t1")] if ends == "cancelled" else []
    *_, claimed = transact(store, *before, take(*types, seed="s2", capabilities=able.get("requires", "")))
    assert taken(claimed) == ["t2"]


def test_tasks_of_a_queue_that_is_closed_in_the_batch_hide_no_others_from_a_claim_of_any_type(store):
    limit(store, max_running=1)
    transact(store, create("t1"), create("t2"), create("t3", type="other"))
    outcomes = transact(store, take(seed="s1"), take(seed="s2"))
    assert [taken(outcome) for outcome in outcomes] == [["t1"], ["t3"]]


@pytest.mark.parametrize("types", [("work",), ("work", "other"), ()])
def test_nothing_is_claimed_from_a_paused_queue_and_holders_go_on(store, types):
    transact(store, create("t1"), create("t2"), take("work"))
    limit(store, paused=True)
    assert taken(run(store, take(*types, seed="s2"))) == "Empty"
    run(store, create("t3", type="other", requires="gpu"))
    assert taken(run(store, take(capabilities="gpu", seed="s2", limit=5))) == ["t3"]
    run(store, complete("t1"))
    limit(store, paused=False)
    assert taken(run(store, take(*types, seed="s2"))) == ["t2"]
    check_log(store)


@pytest.mark.parametrize("types", [("work",), ()])
def test_no_more_tasks_run_than_the_limit_also_within_a_batch(store, types):
    limit(store, max_running=3)
    transact(store, *(create(f"t{n}") for n in range(9)), create("u1", type="other", priority=0))
    claims = [take(*types, limit=2, seed="a"), take("work", limit=2, seed="b"), take("work", seed="c")]
    outcomes = transact(store, *claims, complete("t0", "a"))
    assert list(map(taken, outcomes[:3])) == [["t0", "t1"], ["t2"], "Empty"]
    assert taken(run(store, take(*types, limit=9, seed="d"))) == (["t3"] if types else ["t3", "u1"])
    assert taken(run(store, take("work", seed="e"))) == "Empty"
    check_log(store)


@pytest.mark.parametrize("leave", ["complete", "fail", "release task", "expire", "force"])
def test_a_place_is_free_again_however_a_task_ends(store, clock, leave):
    limit(store, max_running=1)
    transact(store, create("t1", max_attempts=1), create("t2", priority=0), take("work"))
    assert taken(run(store, take("work", seed="s2"))) == "Empty"
    if leave == "expire":
        clock.now += LEASE
        sweep(store)
    ends = {"complete": complete, "fail": fail, "force": lambda: cancel("t1", "force")}
    if leave in ends:
        run(store, ends[leave]())
    elif leave == "release task":
        run(store, release_task(after=60 * SECOND))
    assert taken(run(store, take("work", seed="s2"))) == ["t2"]


def test_a_claim_by_id_is_refused_while_its_queue_is_paused_or_full(store):
    transact(store, create("t1"), create("t2"), *set_queue(max_running=1), take_this("t1"))
    with pytest.raises(NotYetClaimable, match="1 tasks of the queue work run") as caught:
        run(store, take_this("t2", seed="s2"))
    assert caught.value.facts == {"reason": "full"}
    run(store, complete("t1"))
    limit(store, paused=True)
    with pytest.raises(NotYetClaimable, match="is paused"):
        run(store, take_this("t2", seed="s2"))
    limit(store, paused=False)
    assert taken(run(store, take_this("t2", seed="s2"))) == ["t2"]


def test_an_offered_task_is_taken_over_in_a_full_queue(store):
    transact(store, *set_queue(max_running=1), create("t1"), take("work"), offer_task("t1"))
    assert taken(run(store, take_this("t1", seed="s2", offer="code-1"))) == ["t1"]
    assert run(store, OpenQueue(**BASE, type="work")).running == 1


@pytest.mark.parametrize("before", [{"requires": "gpu"}, {"concurrency_key": "full"}], ids=["requires", "key"])
def test_a_waiting_claim_gets_a_task_whose_new_work_it_may_take(memory, started, monkeypatch, before):
    monkeypatch.setattr(TaskWaiters, "join", lambda *_: [])  # as in a batch that has no place for more claims
    engine, sink = started(memory), Futures()
    for command in (*set_queue(max_running_per_key=1), create("t1", concurrency_key="full"), take("work")):
        engine.call(command)
    engine.call(create("t2", unique_key="k", **before))
    _, waiting = sink.send(engine, take("work", seed="s2"), 30)
    wait_until(lambda: engine.task_waiters.size(ACCOUNT) == 1)
    engine.call(create("t3", unique_key="k", replaces=True))
    assert taken(waiting.result(5)) == ["t2"]


@pytest.mark.parametrize("types", [("work",), ()])
def test_a_waiting_claim_gets_the_task_behind_one_whose_deadline_has_passed(memory, clock, started, monkeypatch, types):
    """A claim loads one task of its key, and that one is over."""
    monkeypatch.setattr(transaction, "MAX_READY", 0)
    engine, sink = started(memory), Futures()
    for command in (*set_queue(max_running_per_key=1), create("f", concurrency_key="full"), take("work")):
        engine.call(command)
    for number in range(9):
        engine.call(create(f"f{number}", concurrency_key="full"))
    engine.call(create("t1", concurrency_key="k", deadline_at=clock.now + 10 * SECOND))
    engine.call(create("t2", concurrency_key="k"))
    clock.advance(10)
    _, waiting = sink.send(engine, take(*types, seed="s2"), 30)
    wait_until(lambda: engine.task_waiters.size(ACCOUNT) == 1)
    engine.sweep.wake()
    assert taken(waiting.result(5)) == ["t2"]


def test_waiting_claims_get_the_tasks_behind_more_overdue_ones_than_a_batch_loads(memory, clock, started, monkeypatch):
    monkeypatch.setattr(transaction, "MAX_READY", 0)
    engine, sink = started(memory), Futures()
    for number in range(6):
        engine.call(create(f"t{number}", deadline_at=clock.now + 10 * SECOND if number < 2 else None))
    clock.advance(10)
    waiting = []
    for number, types in enumerate([("work",), (), ("work", "other"), ("work",)]):
        waiting.append(sink.send(engine, take(*types, seed=f"w{number}"), 30)[1])
        wait_until(lambda number=number: engine.task_waiters.size(ACCOUNT) == number + 1)
    engine.sweep.wake()
    assert sorted(taken(outcome.result(5))[0] for outcome in waiting) == ["t2", "t3", "t4", "t5"]


def test_waiting_claims_get_the_places_that_become_free_and_all_when_a_queue_is_resumed(memory, started):
    engine, sink = started(memory), Futures()
    for command in (*set_queue(max_running=1), *(create(f"t{n}") for n in range(4)), take("work", seed="first")):
        engine.call(command)
    waiting = []
    for number, types in enumerate([("work",), (), ("work", "other")]):
        waiting.append(sink.send(engine, take(*types, seed=f"w{number}"), 30)[1])
        wait_until(lambda number=number: engine.task_waiters.size(ACCOUNT) == number + 1)
    engine.call(complete("t0", "first"))
    assert taken(waiting[0].result(5)) == ["t1"]
    for command in set_queue(paused=True, max_running=None):
        engine.call(command)
    engine.call(complete("t1", "w0"))
    assert not waiting[1].done()
    engine.call(set_queue(paused=False)[1])
    assert sorted(taken(future.result(5))[0] for future in waiting[1:]) == ["t2", "t3"]


# -- concurrency keys --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("types", [("work",), ()])
def test_no_more_tasks_of_a_key_run_than_the_limit_also_within_a_batch(store, types):
    limit(store, max_running_per_key=1)
    transact(store, *(create(f"a{n}", concurrency_key="a") for n in range(3)), create("b1", concurrency_key="b"))
    transact(store, create("c1", priority=0), create("c2", priority=0))
    outcomes = transact(store, *(take(*types, seed=f"s{n}") for n in range(3)))
    assert [taken(outcome) for outcome in outcomes] == [["a0"], ["b1"], ["c1"]]
    assert taken(run(store, take(*types, seed="s3", limit=5))) == ["c2"]
    assert taken(run(store, take(*types, seed="s4"))) == "Empty"
    _, after = transact(store, complete("a0", "s0"), take(*types, seed="s5", limit=5))
    assert taken(after) == ["a1"]
    check_log(store)


def test_a_task_that_has_just_come_due_counts_toward_its_key(store, clock):
    limit(store, max_running_per_key=1)
    due = clock.now + SECOND
    transact(store, *(create(f"a{n}", concurrency_key="a", scheduled_at=due) for n in range(3)))
    run(store, create("b1", concurrency_key="b", scheduled_at=due))
    clock.now = due
    assert taken(run(store, take("work", seed="s1", limit=2))) == ["a0", "b1"]
    assert taken(run(store, take("work", seed="s2"))) == "Empty"


def test_a_claim_by_id_is_refused_while_its_key_is_full(store):
    limit(store, max_running_per_key=1)
    transact(store, *(create(f"a{n}", concurrency_key="a") for n in range(2)), create("c1"), take_this("a0"))
    with pytest.raises(NotYetClaimable, match="run with the concurrency key a") as caught:
        run(store, take_this("a1", seed="s2"))
    assert caught.value.facts == {"reason": "key_full"}
    assert taken(run(store, take_this("c1", seed="s3"))) == ["c1"]
    transact(store, offer_task("a0"), take_this("a0", seed="s4", offer="code-1"))
    with pytest.raises(NotYetClaimable):
        run(store, take_this("a1", seed="s5"))


def test_a_limit_that_is_set_in_the_batch_of_a_claim_holds_for_it(store):
    limit(store, paused=False)
    transact(store, *(create(f"a{n}", concurrency_key="a") for n in range(4)), create("b1", concurrency_key="b"))
    change = ChangeQueue(**BASE, type="work", changes={"max_running_per_key": 1})
    _, claimed = transact(store, change, take("work", limit=2))
    assert taken(claimed) == ["a0", "b1"]
    change = ChangeQueue(**BASE, type="work", changes={"max_running_per_key": None})
    _, claimed = transact(store, change, take("work", limit=2, seed="s2"))
    assert taken(claimed) == ["a1", "a2"]


def test_a_waiting_claim_gets_the_task_whose_key_becomes_free(memory, started):
    engine, sink = started(memory), Futures()
    for command in (*set_queue(max_running_per_key=1), *(create(f"a{n}", concurrency_key="a") for n in range(2))):
        engine.call(command)
    engine.call(take("work", seed="first"))
    _, waiting = sink.send(engine, take("work", seed="second"), 30)
    wait_until(lambda: engine.task_waiters.size(ACCOUNT) == 1)
    engine.call(complete("a0", "first"))
    assert taken(waiting.result(5)) == ["a1"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_limits_and_pauses_are_never_exceeded_by_two_servers(opened, started, kind):
    """Random steps of two engines; the log shows what ran when, in the order in which it was committed."""
    engines = [started(opened(kind)), started(opened(kind))]
    steps = sized(400, 10_000)
    failures = []

    def work(engine, number):
        draw, held = random.Random(number), []
        try:
            for turn in range(steps // 4):
                move = draw.random()
                seed = f"{number}-{turn}"
                if move < 0.35:
                    key = draw.choice([None, "k1", "k2", "k3"])
                    engine.call(create(f"t{seed}", type=draw.choice(["a", "b"]), concurrency_key=key))
                elif move < 0.7:
                    got = engine.call(take(*draw.choice([("a",), ("b",), ()]), seed=seed, limit=draw.randint(1, 3)))
                    held += [(each.task.id, each.lease_id) for each in getattr(got, "taken", ())]
                elif held and move < 0.93:
                    task_id, lease_id = held.pop(draw.randrange(len(held)))
                    engine.call(draw.choice([complete, fail, release_task])(task_id, None, lease_id=lease_id))
                else:
                    changes = {"max_running": draw.choice([1, 2, 3, 5]), "paused": draw.random() < 0.3}
                    changes["max_running_per_key"] = draw.choice([1, 1, 2, 4])
                    for command in set_queue("a", **changes):
                        engine.call(command)
                        engine.store.await_open_batches()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(engines[n % 2], n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert count_violations(every(engines[0].store, Event)) == []
    check_log(engines[0].store)


def count_violations(events):
    """Claims of queue `a` while it was paused or full, or the key of the task was, by the log alone."""
    queue = {"paused": False, "max_running": None, "max_running_per_key": None}
    running, kinds, keys, found = set(), {}, {}, []
    for event in events:
        noun, _, row_id = event.subject.partition(":")
        data = json.loads(event.data)
        if noun == "queue":
            queue |= {name: data[name] for name in queue if name in data}
        elif noun == "task":
            kinds.setdefault(row_id, data.get("type"))
            keys.setdefault(row_id, data.get("concurrency_key"))
            if kinds[row_id] != "a" or "state" not in data:
                continue
            running.discard(row_id)
            if data["state"] == CLAIMED:
                if queue["paused"] or (queue["max_running"] is not None and len(running) >= queue["max_running"]):
                    found.append(event)
                alike = [other for other in running if keys[row_id] is not None and keys[other] == keys[row_id]]
                if queue["max_running_per_key"] is not None and len(alike) >= queue["max_running_per_key"]:
                    found.append(event)
                running.add(row_id)
    return found
