"""The store interface, writes: all of a batch or nothing, versions without gaps, tokens that only grow."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.core.lease import LOCK, Lease
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.engine.view import View
from holdfast.store.changes import Answer
from holdfast.store.needs import AllNeeds, Needs
from tests.support import (
    ACCOUNT,
    ALICE,
    BOB,
    CAUSE,
    START,
    a_lease,
    a_lock,
    a_session,
    check_log,
    every,
    load_view,
    put,
)

EVERYTHING = a_lease(
    "every/column",
    kind=LOCK,
    holder="h\u00e9",
    owner='o"\\\n\t\x01',
    metadata='{"a": [1, "\U0001f600"]}',
    session="s1",
    ephemeral=True,
    delay=5,
    available_at=6,
    note="",
    checkpoint='{"deep":[[[]]]}',
    progress="0.5",
    acl='["user:bob"]',
    ended='{"owner":null,"how":"released","at":1,"kind":"job","proof":"p"}',
    ended_checkpoint="null",
    offer='{"proof":"p","until":1,"lasts":1,"to":"builder"}',
    token=2**62,
    ttl=2**57,
)
ANSWER = Answer(ACCOUNT, "key-1", "print", 200, '{"lease_id":"\u00e9"}', START)


class Abandoned(Exception):
    pass


def saved_by(transaction, *rows, answers=()):
    view = View(transaction.load(AllNeeds.of([Needs(rows=tuple(row.key for row in rows))])))
    for row in rows:
        view.put(row, "changed")
    for answer in answers:
        view.remember(answer)
    transaction.save(view.changes([]))


def test_an_abandoned_transaction_leaves_no_trace(store):
    put(store, a_lease("kept"))

    def abandon():
        with store.transaction() as transaction:
            saved_by(transaction, a_lease("job"), a_lease("kept", ends=None), a_session(), answers=[ANSWER])
            raise Abandoned

    with pytest.raises(Abandoned):
        abandon()
    view = load_view(
        store, rows=(a_lease("job").key, a_lease("kept").key, a_session().key), answers=((ACCOUNT, "key-1"),)
    )
    assert view.find(Lease, ACCOUNT, "job") is None
    assert view.find(Session, ACCOUNT, "s1") is None
    assert view.lease(ACCOUNT, "kept").proof is not None
    assert view.answer(ACCOUNT, "key-1") is None
    assert [event.subject for event in every(store, Event)] == ["lease:kept"]


def test_a_transaction_that_saved_nothing_changes_nothing(store):
    with store.transaction() as transaction:
        View(transaction.load(AllNeeds.of([Needs(rows=(a_lease().key,))]))).put(a_lease(), "changed")
    assert every(store, Lease) == []
    assert every(store, Event) == []


@pytest.mark.parametrize(
    "row",
    [
        EVERYTHING,
        Lease(ACCOUNT, "blank"),
        a_session("over", ended_at=START, ended_how="expired"),
        a_session("open"),
        ALICE,
        Principal(ACCOUNT, "p", namespace="n", revoked_at=5),
    ],
    ids=["every column", "blank", "ended session", "open session", "principal", "revoked principal"],
)
def test_saved_rows_are_loaded_again(store, row):
    put(store, a_session(), row)
    saved = load_view(store, rows=(row.key,)).find(type(row), ACCOUNT, row.id)
    assert saved == replace(row, version=1, changed_at=START)
    assert type(getattr(saved, "ephemeral", True)) is bool


def test_version_counts_the_changes_and_changed_at_is_the_last(store, clock):
    for ttl in (1, 2, 3):
        put(store, a_lease(ttl=ttl))
        clock.advance(1)
    row = load_view(store, rows=(a_lease().key,)).lease(ACCOUNT, "job")
    assert (row.version, row.changed_at, row.ttl) == (3, START + 2 * SECOND, 3)
    check_log(store)


def test_several_changes_of_a_row_in_one_batch_are_one_row_and_as_many_events(store):
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(rows=(a_lease().key,))])))
        for ttl in (1, 2, 3):
            view.put(a_lease(ttl=ttl), "changed")
        transaction.save(view.changes([]))
    assert [row.version for row in every(store, Lease)] == [3]
    assert [event.version for event in every(store, Event)] == [1, 2, 3]
    check_log(store)


def test_drawn_tokens_grow_and_never_come_back_lower(store):
    def draw(count, *, keep):
        with store.transaction() as transaction:
            view = View(transaction.load(AllNeeds.of([Needs(rows=(a_lease().key,))])))
            tokens = transaction.draw(count)
            view.put(a_lease(token=tokens[-1]), "changed")
            if not keep:
                raise Abandoned
            transaction.save(view.changes(tokens))
        return tokens

    first = draw(3, keep=True)
    with pytest.raises(Abandoned):
        draw(2, keep=False)
    second = draw(2, keep=True)
    assert first == sorted(set(first))
    assert first[0] >= 1
    assert second == sorted(set(second))
    assert second[0] > first[-1]
    with store.read() as reader:
        assert reader.next_token() == second[-1] + 1


def test_tokens_are_raised_above_a_number_and_never_lowered(store):
    def draw(floor):
        with store.transaction() as transaction:
            view = View(transaction.load(AllNeeds.of([Needs(rows=(a_lease().key,))])))
            transaction.advance_tokens(floor)
            tokens = transaction.draw(2)
            view.put(a_lease(token=tokens[-1]), "changed")
            transaction.save(view.changes(tokens))
        return tokens

    assert draw(1) == [2, 3]
    assert draw(2**40) == [2**40 + 1, 2**40 + 2]
    assert draw(5) == [2**40 + 3, 2**40 + 4]
    assert draw(2**40 + 4) == [2**40 + 5, 2**40 + 6]
    with store.read() as reader:
        assert reader.next_token() == 2**40 + 7


def test_next_token_is_the_first_token_before_any_was_drawn(store):
    with store.read() as reader:
        announced = reader.next_token()
    with store.transaction() as transaction:
        transaction.load(AllNeeds.of([]))
        assert transaction.draw(1) == [announced]


def test_the_log_of_each_account_is_dense_although_batches_mix_them(store):
    for number in range(3):
        put(store, *(a_lease(name, account=account, ttl=number) for name in "xy" for account in ("b", "a", "c")))
    for account in "abc":
        with store.read() as reader:
            events = reader.events(account, 0, 100)
        assert [event.seq for event in events] == [1, 2, 3, 4, 5, 6]
        assert [event.subject for event in events] == ["lease:x", "lease:y"] * 3
        assert [event.version for event in events] == [1, 1, 2, 2, 3, 3]
    check_log(store)


def test_an_event_is_stored_unchanged(store):
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(rows=(EVERYTHING.key,))])))
        view.cause = replace(CAUSE, actor="\u00e9l\u00e8ve")
        view.put(EVERYTHING, "claimed")
        changes = view.changes([])
        transaction.save(changes)
    assert every(store, Event) == [replace(changes.events[0], seq=1)]
    assert changes.events[0].actor == "\u00e9l\u00e8ve"


def test_loading_a_lease_also_loads_its_session(store):
    put(store, a_session("s1"), a_lease("job", session="s1", ephemeral=True))
    view = load_view(store, rows=(a_lease().key,))
    assert view.find(Session, ACCOUNT, "s1") is not None


def test_loading_holdings_loads_only_the_ephemeral_leases_of_the_session(store):
    put(
        store, a_session("s1"), a_session("s2"), a_session("s1", account="other"),
        a_lease("mine", session="s1", ephemeral=True),
        a_lease("run out", session="s1", ephemeral=True, ends=START - 1),
        a_lease("not ephemeral", session="s1"),
        a_lease("another's", session="s2", ephemeral=True),
        a_lease("abroad", account="other", session="s1", ephemeral=True),
    )  # fmt: skip
    view = load_view(store, holdings=((ACCOUNT, "s1"),))
    assert sorted(lease.id for lease in view.leases_of(ACCOUNT, "s1")) == ["mine", "run out"]
    assert view.find(Lease, ACCOUNT, "not ephemeral") is None
    assert view.leases_of("other", "s1") == []


def test_live_locks_of_a_principal_are_counted_exactly(store):
    put(
        store,
        a_lock("1"),
        a_lock("2"),
        a_lock("3", principal=BOB.id),
        a_lock("4", ends=START),
        a_lock("5", ends=START + 1),
        a_lease("6"),
        a_lock("7", account="other"),
        a_lease("__election/abcdefgh", kind="election"),
    )
    view = load_view(
        store, lock_counts=((ACCOUNT, ALICE.id), (ACCOUNT, BOB.id), (ACCOUNT, "unknown"), ("other", ALICE.id))
    )
    assert [view.live_locks(ACCOUNT, who) for who in (ALICE.id, BOB.id, "unknown")] == [3, 1, 0]
    assert view.live_locks("other", ALICE.id) == 1


def test_live_elections_of_an_account_are_counted_exactly(store):
    elections = [("a" * 8, ACCOUNT, START + 1), ("b" * 8, ACCOUNT, START), ("c" * 8, "other", START + 1)]
    put(
        store,
        *(a_lease(f"__election/{name}", account=where, kind="election", ends=ends) for name, where, ends in elections),
    )
    put(store, a_lease("job"), a_lock("lock"))
    view = load_view(store, election_counts=(ACCOUNT, "other", "empty"))
    assert [view.live_elections(account) for account in (ACCOUNT, "other", "empty")] == [1, 1, 0]


def test_answers_are_saved_with_their_effect_and_deleted_by_age(store):
    with store.transaction() as transaction:
        saved_by(transaction, a_lease(), answers=[ANSWER, replace(ANSWER, key="key-2", answered_at=START + 1)])
    wanted = ((ACCOUNT, "key-1"), (ACCOUNT, "key-2"), ("other", "key-1"))
    view = load_view(store, answers=wanted)
    assert view.answer(ACCOUNT, "key-1") == ANSWER
    assert view.answer("other", "key-1") is None
    store.forget_answers(START + 1)
    view = load_view(store, answers=wanted)
    assert view.answer(ACCOUNT, "key-1") is None
    assert view.answer(ACCOUNT, "key-2") is not None


def test_the_last_change_of_a_row_never_goes_back(store, clock):
    put(store, a_lease())
    clock.advance(-3600)
    put(store, a_lease(note="changed"))
    assert [row.changed_at for row in every(store, Lease)] == [START]
    check_log(store)


def test_many_rows_are_saved_and_loaded_in_one_batch(store):
    rows = [a_lease(f"job-{number:03}") for number in range(300)]
    put(store, *rows)
    put(store, *rows)
    assert [row.version for row in every(store, Lease)] == [2] * 300
    check_log(store)


def test_a_reader_sees_a_batch_only_after_its_commit(store):
    with store.transaction() as transaction:
        saved_by(transaction, a_lease())
        with store.read() as reader:
            assert reader.row(Lease, ACCOUNT, "job") is None
    with store.read() as reader:
        assert reader.row(Lease, ACCOUNT, "job") is not None


def test_events_cannot_be_rewritten(sql_store):
    put(sql_store, a_lease())
    statement = "UPDATE events SET kind = 'lease.forged'"
    with pytest.raises(Exception, match="events never change"), sql_store.transaction() as transaction:
        transaction.load(AllNeeds.of([]))
        if sql_store.name == "postgres":
            transaction._connection.execute("SET LOCAL holdfast.schema = 1000000")  # as a server does that writes
        (sql_store._writer if sql_store.name == "sqlite" else transaction._connection).execute(statement)
    assert [event.kind for event in every(sql_store, Event)] == ["lease.changed"]


def test_a_reopened_store_has_everything_it_acknowledged(sql_store):
    with sql_store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(rows=(a_lease().key,))])))
        view.put(a_lease(token=view.token()), "claimed")
        transaction.save(view.changes(transaction.draw(1)))
    sql_store.close()
    sql_store.open()
    with sql_store.read() as reader:
        assert reader.row(Lease, ACCOUNT, "job").token == 1
        assert reader.next_token() == 2
    check_log(sql_store)


def test_a_store_records_its_last_beat_and_a_clean_stop(sql_store, clock):
    assert sql_store.last_beat() is None
    sql_store.beat()
    clock.advance(7)
    assert sql_store.last_beat() == (START, START + 7 * SECOND)
    sql_store.close_outage(sql_store.beat()[1])
    assert sql_store.last_beat() is None
    sql_store.beat()
    assert sql_store.last_beat() == (START + 7 * SECOND, START + 7 * SECOND)


def test_a_store_on_disk_reports_its_size(sql_store):
    assert sql_store.size() > 0


def test_new_rows_are_inserted_in_the_order_in_which_locks_are_taken(store):
    """Two servers that insert the same names in different orders deadlock; PostgreSQL notices that after a second."""
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(rows=tuple(a_lease(name).key for name in "cab"))])))
        for name in "cab":
            view.put(a_lease(name), "claimed")
        changes = view.changes([])
    assert [row.id for row in changes.inserts["leases"]] == ["a", "b", "c"]
