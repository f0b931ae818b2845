"""Idempotency-Key: a repeated request has one effect and one answer, also concurrently."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.core.errors import IdempotencyConflict, LeaseLost
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.row import SECOND
from holdfast.engine.command import Held, Replayed
from holdfast.engine.retention import RemoveRow
from holdfast.engine.verbs.batch import Batch
from holdfast.engine.verbs.job_claims import Claimed
from holdfast.engine.verbs.jobs import Changed
from tests.support import (
    ACCOUNT,
    CAUSE,
    START,
    acquire,
    check_log,
    claim,
    every,
    heartbeat,
    load_view,
    once,
    release,
    run,
    transact,
)  # fmt: skip
from tests.task_commands import beat, create, take_this


def test_a_repeated_claim_returns_the_same_lease(store, clock):
    first = run(store, claim("a", "l1", once=once()))
    clock.advance(5)
    again = run(store, claim("a", "l2", once=once()))
    assert (again.lease_id, again.lease.token, again.replayed) == ("l1", first.lease.token, True)
    assert again.lease == first.lease
    assert again.now == START + 5 * SECOND


def test_a_replayed_claim_does_not_extend_the_lease(store, clock):
    run(store, claim("a", "l1", ttl=10 * SECOND, once=once()))
    clock.advance(9)
    assert run(store, claim("a", "l2", once=once())).lease.expires_at == START + 10 * SECOND


def test_another_body_under_the_same_key_is_refused(store):
    run(store, claim("a", "l1", once=once("k", "one body")))
    with pytest.raises(IdempotencyConflict):
        run(store, claim("b", "l2", once=once("k", "another body")))
    assert [row.id for row in every(store, Lease)] == ["a"]


def test_accounts_do_not_share_keys(store):
    run(store, claim("a", "l1", once=once()))
    assert run(store, claim("a", "l2", account="other", once=once())).lease_id == "l2"


@pytest.mark.parametrize("how", ["released", "expired"])
def test_a_replay_after_the_lease_ended_is_refused(store, clock, how):
    run(store, claim("a", "l1", once=once()))
    if how == "released":
        run(store, release("a", "l1"))
    else:
        clock.advance(60)
    with pytest.raises(LeaseLost) as caught:
        run(store, claim("a", "l2", once=once()))
    assert caught.value.facts["ended"] == how


def test_a_replay_of_a_claim_whose_name_was_removed_is_refused_alone(store, clock):
    run(store, claim("a", "l1", once=once()))
    run(store, release("a", "l1"))
    run(store, claim("b", "l9", account="other"))
    clock.advance(5)
    run(store, RemoveRow(account=ACCOUNT, cause=CAUSE, key=(Lease.table, ACCOUNT, "a"), before=clock.now))
    replayed, renewed = transact(store, claim("a", "l2", once=once()), heartbeat("b", "l9", account="other"))
    assert isinstance(replayed, LeaseLost)
    assert isinstance(renewed, Changed)
    check_log(store)


def test_a_refused_claim_is_not_stored(store):
    run(store, claim("a", "l1"))
    assert isinstance(run(store, claim("a", "l2", once=once())), Held)
    run(store, release("a", "l1"))
    assert run(store, claim("a", "l3", once=once())).lease_id == "l3"


def test_a_claim_of_a_delayed_name_is_not_stored(store, clock):
    """It ended an expired lease, so it changed a row, but its answer was still held."""
    run(store, acquire("a", ttl=SECOND, delay=5 * SECOND))
    clock.advance(2)
    assert isinstance(run(store, claim("a", "l1", once=once())), Held)
    clock.advance(9)
    assert run(store, claim("a", "l2", once=once())).lease_id == "l2"


def test_a_repeated_release_gets_its_first_answer_again(store):
    run(store, claim("a", "l1"))
    assert isinstance(run(store, release("a", "l1", once=once("k"))), Changed)
    assert run(store, release("a", "l1", once=once("k"))) == Replayed(200, b'{"status":"Changed"}')


@pytest.mark.parametrize("content", [{"note": "n"}, {"checkpoint": "1"}, {"progress": "1"}], ids=str)
def test_a_replayed_heartbeat_with_content_does_not_extend_the_lease(memory, clock, content):
    run(memory, claim("a", "l1"))
    run(memory, heartbeat("a", "l1", once=once("k"), **content))
    clock.advance(5)
    assert isinstance(run(memory, heartbeat("a", "l1", once=once("k"), **content)), Replayed)
    assert every(memory, Lease)[0].expires_at == START + 60 * SECOND


def test_no_answer_is_stored_for_a_heartbeat_without_content(store, clock):
    transact(store, claim("a", "l1"), create("t1"), take_this("t1"))
    batch = Batch(account=ACCOUNT, cause=CAUSE, items=(beat("t1"), beat("t1")), once=once("of a batch"))
    commands = (heartbeat("a", "l1", ttl=SECOND, once=once("of a job")), beat("t1", once=once("of a task")), batch)
    transact(store, *commands)
    keys = [(ACCOUNT, command.once.key) for command in commands]
    view = load_view(store, answers=tuple(keys))
    assert [view.answer(*key) for key in keys] == [None, None, None]
    assert [event.kind for event in every(store, Event)].count("task.renewed") == 3
    assert run(store, heartbeat("a", "l1", once=once("of a job"))).lease.version == 3, "it renews again"


def test_fifty_duplicates_on_two_servers_get_one_lease(opened, started):
    engines = [started(opened("postgres")), started(opened("postgres"))]

    def send(number):
        return engines[number % 2].call(claim("a", f"l{number}", once=once()))

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(send, range(50)))
    assert all(isinstance(answer, Claimed) for answer in answers)
    assert len({(answer.lease_id, answer.lease.token) for answer in answers}) == 1
    assert sum(not answer.replayed for answer in answers) == 1
    assert [row.version for row in every(engines[0].store, Lease)] == [1]
    check_log(engines[0].store)


def test_concurrent_duplicates_on_one_server_get_one_lease(opened, started):
    engine = started(opened("memory"))
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda number: engine.call(claim("a", f"l{number}", once=once())), range(20)))
    assert len({answer.lease_id for answer in answers}) == 1
    with engine.store.read() as reader:
        assert len(reader.history(ACCOUNT, "lease:a")) == 1
