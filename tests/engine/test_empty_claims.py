"""A claim is answered that there is no task only if there was none at one moment, also beside other servers."""

from __future__ import annotations

from holdfast.engine.backlog import Backlog
from holdfast.engine.lane import Lane
from holdfast.engine.outages import Outages
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs.tasks.claiming import Empty
from holdfast.store.postgres.transaction import PostgresTransaction
from tests.support import Keep, run
from tests.task_commands import create, take


def run_batch(store, *commands):
    """Run the commands as one batch; their outcomes in this order, None for one that was not answered."""
    replies = {}
    lane = Lane(
        0, store, Backlog(), Outages(), on_return=list,
        on_commit=lambda done: replies.update({id(ticket.command): outcome for ticket, outcome in done.replies}),
    )  # fmt: skip
    lane.run([Ticket(command, Keep()) for command in commands])
    return [replies.get(id(command)) for command in commands]


def test_a_task_that_is_made_while_a_batch_is_decided_is_not_missed(opened, monkeypatch):
    """The batch has changes, so in the log it is after the new task: its claims must have seen it."""
    store, other, draw = opened("postgres"), opened("postgres"), PostgresTransaction.draw
    run(other, create("t1"))

    def make_another_first(transaction, count):
        monkeypatch.undo()
        run(other, create("t2"))
        return draw(transaction, count)

    monkeypatch.setattr(PostgresTransaction, "draw", make_another_first)
    outcomes = run_batch(store, take(seed="s1"), take(seed="s2"))
    assert [outcome.taken[0].task.id for outcome in outcomes] == ["t1", "t2"]


def test_a_claim_beside_changes_is_answered_if_there_is_no_task(opened):
    store = opened("postgres")
    run(store, create("t1"))
    first, second = run_batch(store, take(seed="s1"), take(seed="s2"))
    assert first.taken[0].task.id == "t1"
    assert isinstance(second, Empty)


def test_a_claim_is_repeated_until_its_batch_has_no_changes(opened, monkeypatch):
    """The first repetition takes the task that was made meanwhile, so another claim is unsure once more."""
    store, other, draw = opened("postgres"), opened("postgres"), PostgresTransaction.draw
    run(other, create("t1"))

    def make_another_first(transaction, count):
        monkeypatch.undo()
        run(other, create("t2"))
        return draw(transaction, count)

    monkeypatch.setattr(PostgresTransaction, "draw", make_another_first)
    first, second, third = run_batch(store, take(seed="s1"), take(seed="s2"), take(seed="s3"))
    assert [outcome.taken[0].task.id for outcome in (first, second)] == ["t1", "t2"]
    assert isinstance(third, Empty)
