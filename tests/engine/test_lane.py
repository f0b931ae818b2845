"""A lane: a failing command does not affect others, and nothing is answered before the commit."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from holdfast.core.errors import LeaseLost, NotHeld, OutcomeUnknown, StoreFull, StoreUnavailable, ValueRefused
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.row import SECOND
from holdfast.engine.backlog import Backlog
from holdfast.engine.command import Held
from holdfast.engine.expiry import GiveGrace
from holdfast.engine.lane import MAX_RERUNS, Lane
from holdfast.engine.outages import Outages
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs.job_claims import Claimed, ClaimJob
from holdfast.engine.verbs.jobs import Changed, ForceRelease
from holdfast.store.contract import Rerun, StaleConnection
from tests.support import (
    ACCOUNT,
    CAUSE,
    START,
    Keep,
    a_lease,
    check_log,
    claim,
    every,
    heartbeat,
    idle_lane,
    put,
    release,
    run,
    transact,
)  # fmt: skip

REFUSED_VALUE = 2**63
"""A number that no database takes."""


class BuggyCommand(ClaimJob, frozen=True):
    """A command with a bug."""

    def decide(self, view):
        view.put(a_lease(self.name), "claimed")
        raise ZeroDivisionError("a bug in a verb")


class FailingStore:
    """A store whose first transactions fail, at their beginning or at their end."""

    lanes = 1

    def __init__(self, store, *failures):
        self._store = store
        self.failures = list(failures)
        self.transactions = 0

    @contextmanager
    def transaction(self, lane=0):
        self.transactions += 1
        if self.failures:
            raise self.failures.pop(0)
        with self._store.transaction(lane) as transaction:
            yield transaction


def run_batch(store, *commands, on_return=list):
    """Run one batch in a lane; returns every reply by the name of its command."""
    replies = []
    lane = idle_lane(store, lambda committed: replies.extend(committed.replies))
    lane._on_return = on_return
    lane._work([Ticket(command, Keep()) for command in commands])
    return lane, {ticket.command.name: outcome for ticket, outcome in replies}


def test_a_refused_command_changes_nothing_and_the_others_of_its_batch_do(store):
    outcomes = transact(store, claim("a", "l1"), release("b", "wrong"), claim("c", "l3"), claim("a", "l4"))
    assert [type(outcome) for outcome in outcomes] == [Claimed, LeaseLost, Claimed, Held]
    assert [row.id for row in every(store, Lease)] == ["a", "c"]
    assert [event.subject for event in every(store, Event)] == ["lease:a", "lease:c"]
    assert [outcome.lease.token for outcome in outcomes if isinstance(outcome, Claimed)] == [1, 2]
    check_log(store)


def test_the_changes_of_a_refused_command_are_undone(store, clock):
    """The command ended an expired lease and was then refused: the ending is undone and left to the sweep."""
    run(store, claim("a", "l1", ttl=SECOND))
    clock.advance(2)
    force = ForceRelease(account=ACCOUNT, cause=CAUSE, name="a", by="x", reason="y")
    outcomes = transact(store, force, claim("b", "l2"))
    assert [type(outcome) for outcome in outcomes] == [NotHeld, Claimed]
    assert [(row.id, row.version) for row in every(store, Lease)] == [("a", 1), ("b", 1)]
    check_log(store)


def test_a_refused_command_draws_no_token(store):
    run(store, claim("a", "l1"))
    transact(store, claim("a", "l2"), claim("a", "l3"))
    assert run(store, claim("b", "l4")).lease.token == 2


def test_an_unexpected_error_in_a_command_fails_only_its_caller(store):
    bug = BuggyCommand(**{name: getattr(claim("b"), name) for name in ClaimJob.__struct_fields__})
    outcomes = transact(store, claim("a", "l1"), bug, claim("c", "l3"))
    assert [type(outcome) for outcome in outcomes] == [Claimed, ZeroDivisionError, Claimed]
    assert [row.id for row in every(store, Lease)] == ["a", "c"]
    check_log(store)


def test_commands_of_one_batch_see_earlier_changes(store):
    first, beat, free, second = transact(
        store, claim("a", "l1"), heartbeat("a", "l1"), release("a", "l1", note="done"), claim("a", "l2")
    )
    assert [type(outcome) for outcome in (first, beat, free, second)] == [Claimed, Changed, Changed, Claimed]
    assert second.lease.token > first.lease.token
    assert second.previous.note == "done"
    check_log(store)


def test_a_lease_that_began_and_ended_in_one_batch_has_its_real_token(store):
    force = ForceRelease(account=ACCOUNT, cause=CAUSE, name="a", by="x", reason="y")
    granted, freed, again = transact(store, claim("a", "l1"), force, claim("a", "l2"))
    assert [outcome.lease.token for outcome in (granted, freed, again)] == [1, 1, 2]
    assert '":-' not in every(store, Lease)[0].ended
    check_log(store)


@pytest.mark.parametrize("size", [1, 2, 7, 16])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_value_that_the_store_refuses_fails_only_its_caller(opened, clock, kind, size):
    store = opened(kind, clock)
    commands = [claim(f"job-{number:02}", f"l{number}", account=f"account-{number % 3}") for number in range(size)]
    commands.insert(size // 2, claim("refused", "lp", ttl=REFUSED_VALUE, account="careless"))
    lane, replies = run_batch(store, *commands)
    assert isinstance(replies.pop("refused"), ValueRefused)
    assert [outcome for outcome in replies.values() if not isinstance(outcome, Claimed)] == []
    assert sorted(row.id for row in every(store, Lease)) == sorted(replies)
    assert set(lane._isolated) == {"careless"}
    check_log(store)


def test_invalid_unicode_fails_only_its_caller(store):
    _, replies = run_batch(store, claim("a", "l1"), claim("b", "l2", owner="\ud800"), claim("c", "l3"))
    assert isinstance(replies["b"], ValueRefused)
    assert isinstance(replies["a"], Claimed)
    assert isinstance(replies["c"], Claimed)


def test_an_account_with_a_refused_value_runs_in_batches_of_one_for_a_while(memory):
    lane = idle_lane(memory)
    batch = [Ticket(claim(str(number), account=account), Keep()) for number, account in enumerate("abab")]
    assert lane._isolate(batch) == [batch]
    lane._split([batch[1]], ValueRefused("refused"))
    assert lane._isolate(batch) == [[batch[0], batch[2]], [batch[1]], [batch[3]]]
    lane._isolated = dict.fromkeys(lane._isolated, 0.0)
    assert lane._isolate(batch) == [batch]


@pytest.mark.parametrize("trouble", [StoreUnavailable("gone"), StoreFull("full"), OutcomeUnknown("who knows")], ids=str)
def test_trouble_fails_the_whole_batch_with_applied(memory, trouble):
    lane, replies = run_batch(FailingStore(memory, trouble), claim("a", "l1"), claim("b", "l2"))
    assert list(replies.values()) == [trouble, trouble]
    assert trouble.applied == ("unknown" if isinstance(trouble, OutcomeUnknown) else "no")
    assert every(memory, Lease) == []
    assert lane._outages.count == 1
    assert not lane._outages.writable


def test_an_unexpected_error_fails_its_batch_and_not_the_lane(memory):
    _, replies = run_batch(FailingStore(memory, RuntimeError("surprise")), claim("a"))
    assert isinstance(replies["a"], RuntimeError)


def test_a_rerun_loads_and_decides_again(memory):
    troubled = FailingStore(memory, Rerun(), Rerun())
    _, replies = run_batch(troubled, claim("a"))
    assert isinstance(replies["a"], Claimed)
    assert troubled.transactions == 3


def test_too_many_reruns_end_as_trouble(memory):
    troubled = FailingStore(memory, *(Rerun() for _ in range(MAX_RERUNS)))
    _, replies = run_batch(troubled, claim("a"))
    assert isinstance(replies["a"], StoreUnavailable)
    assert troubled.transactions == MAX_RERUNS


def test_a_batch_that_reruns_too_often_is_split_and_fails_no_other_command(memory):
    troubled = FailingStore(memory, *(Rerun() for _ in range(2 * MAX_RERUNS)))
    _, replies = run_batch(troubled, claim("a"), claim("b"))
    assert isinstance(replies["a"], StoreUnavailable)
    assert isinstance(replies["b"], Claimed)


def test_a_stale_connection_fails_no_command_and_asks_for_grace(memory):
    troubled, asked = FailingStore(memory, StaleConnection()), []
    _, replies = run_batch(troubled, claim("a"), on_return=lambda: asked.append(True) or [])
    assert isinstance(replies["a"], Claimed)
    assert (troubled.transactions, asked) == (2, [True])


def test_after_trouble_grace_is_given_before_anything_can_expire(memory, clock):
    """The first batch after an outage would take over a job that its holder could not renew."""
    put(memory, a_lease("job", ends=START + SECOND))
    clock.advance(20)
    grace = GiveGrace(account=ACCOUNT, cause=CAUSE, key=a_lease("job").key, last_beat=START)
    replies = []
    lane = idle_lane(
        FailingStore(memory, StoreUnavailable("gone")), lambda committed: replies.extend(committed.replies)
    )
    lane._on_return = lambda: [grace]
    for number in range(2):
        lane._work([Ticket(claim("job", f"l{number}"), Keep())])
    assert [type(outcome) for _, outcome in replies] == [StoreUnavailable, Held]
    assert lane._outages_seen == lane._outages.count == 1


def test_an_outage_is_not_over_until_the_batch_that_gives_grace_is_committed(memory, clock):
    put(memory, a_lease("job", ends=START + SECOND))
    clock.advance(20)
    grace = GiveGrace(account=ACCOUNT, cause=CAUSE, key=a_lease("job").key, last_beat=START)
    replies = []
    reruns = (Rerun() for _ in range(MAX_RERUNS))  # it runs too often, which is no trouble of the store
    lane = idle_lane(FailingStore(memory, *reruns), lambda committed: replies.extend(committed.replies))
    lane._on_return = lambda: [grace]
    lane._outages.count += 1
    for number in range(2):
        lane._work([Ticket(claim("job", f"l{number}"), Keep())])
    assert [type(outcome) for _, outcome in replies] == [StoreUnavailable, Held]


def test_an_outage_during_the_recovery_from_another_one_is_recovered_from_too(memory):
    """Another lane finds it, while this one gives grace."""
    outages, recoveries = Outages(), []

    def recover():
        recoveries.append(outages.count)
        outages.count += len(recoveries) == 1
        return []

    lane = Lane(0, memory, Backlog(), outages, on_commit=lambda _: None, on_return=recover)
    outages.count += 1
    for name in "abc":
        lane._work([Ticket(claim(name), Keep())])
    assert recoveries == [1, 2]


def test_a_batch_without_changes_saves_nothing(store):
    run(store, claim("a", "l1"))
    before = every(store, Event)
    transact(store, claim("a", "l2"), release("b", "x"))
    assert every(store, Event) == before


def test_a_committed_batch_reports_freed_names_and_the_next_deadline(memory, clock):
    lane = idle_lane(memory)
    committed = lane.transaction.run([Ticket(claim("a", "l1", ttl=9), Keep()), Ticket(claim("b", "l2", ttl=5), Keep())])
    effects = committed.effects()
    assert (effects.freed, effects.deadline, committed.now) == ([], START + 5, START)
    effects = lane.transaction.run([Ticket(release("a", "l1"), Keep())]).effects()
    assert effects.freed == [("leases", ACCOUNT, "a")]


def test_a_pause_is_over_before_the_heartbeat_that_follows_it(store):
    """Otherwise that heartbeat would record the pause once more, and the next pause would get too long a grace."""
    now, is_paused = [100.0], []
    outages = Outages(clock=lambda: now[0])
    more = {"on_return": list, "on_recovered": lambda: is_paused.append(outages.is_paused())}
    lane = Lane(0, store, Backlog(), outages, on_commit=lambda _: None, **more)
    now[0] += 60.0
    lane._work([Ticket(claim("job"), Keep())])
    assert is_paused == [False]
