"""The store interface, reservations: every column, the index of their prefixes, and columns that the log leaves out."""

from __future__ import annotations

import threading

import pytest
from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.core.reservation.row import SHARED, Reservation, encode_paths, paths_of
from holdfast.core.row import SECOND
from holdfast.engine.view import View
from holdfast.store.needs import AllNeeds, Needs
from tests.support import ACCOUNT, START, check_log, every, load_view, put

SPACE = "acme/shop"
EVERYTHING = Reservation(
    ACCOUNT,
    "every-column",
    space="größe/日本",
    mode=SHARED,
    paths=encode_paths(("a/**", "größe/\U0001f600?.py")),
    owner='o"\\\n\t\x01',
    principal="p",
    reason="",
    metadata='{"a": [1, "\U0001f600"]}',
    session="s1",
    ttl=2**57,
    arrived_at=START - 1,
    proof="hash",
    token=2**62,
    claimed_at=START,
    expires_at=START + 1,
    note="note",
    checkpoint='{"deep":[[[]]]}',
    ended_how="restored",
    ended_proof="another hash",
    ended_by="admin",
    ended_reason="because",
)


def held(name="r1", *paths, **more):
    given = {"space": SPACE, "proof": "hash", "expires_at": START + 60 * SECOND, "arrived_at": START}
    return Reservation(ACCOUNT, name, paths=encode_paths(paths or ("a/b",)), **given | more)


def waiting(name="w1", *paths, **more):
    return held(name, *paths, **{"proof": None, "expires_at": None, "waits_until": START + 6 * SECOND} | more)


def found_under(store, prefix, *, below=False):
    view = load_view(store, paths=((ACCOUNT, SPACE, prefix, below),))
    return [row.id for row in view.open_reservations(ACCOUNT, SPACE)]


def change(store, row, *, touch=False, keep=True):
    """Save a changed row, or touch it."""
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(rows=(row.key,))])))
        view.touch(row) if touch else view.put(row, "changed")
        view.keep() if keep else view.undo()
        transaction.save(view.changes([]))


def test_every_column_of_a_reservation_is_kept(store):
    put(store, EVERYTHING)
    (row,) = every(store, Reservation)
    assert row == replace(EVERYTHING, version=1, changed_at=START)
    with store.read() as reader:
        assert reader.row(Reservation, ACCOUNT, EVERYTHING.id) == row
    check_log(store)


def test_the_prefixes_of_a_reservation_follow_its_paths_until_it_ends(store):
    put(store, held("r1", "a/b", "c/**"))
    assert [found_under(store, prefix) for prefix in ("a/b", "a/b/x", "c/d", "b")] == [["r1"], ["r1"], ["r1"], []]
    (row,) = every(store, Reservation)
    change(store, replace(row, paths=encode_paths(("c/**", "b/*"))))
    assert [found_under(store, prefix) for prefix in ("a/b", "c/d", "b")] == [[], ["r1"], ["r1"]]
    assert found_under(store, "", below=True) == ["r1"]
    (row,) = every(store, Reservation)
    change(store, replace(row, proof=None, expires_at=None, ended_at=START, ended_how="released"))
    assert [found_under(store, prefix) for prefix in ("a/b", "c/d", "b")] == [[], [], []]
    assert found_under(store, "", below=True) == []


def test_a_removed_reservation_leaves_no_prefix(store):
    put(store, held("r1", "a/b", "c/**"), held("r2", "c/d"))
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(rows=((Reservation.table, ACCOUNT, "r1"),))])))
        view.remove(view.find(Reservation, ACCOUNT, "r1"), "removed")
        view.keep()
        transaction.save(view.changes([]))
    assert found_under(store, "", below=True) == ["r2"]
    put(store, held("r3", "a/b"))
    assert found_under(store, "a/b") == ["r3"]


def test_an_abandoned_transaction_leaves_no_prefix(store):
    class Abandoned(Exception):
        pass

    with pytest.raises(Abandoned), store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs()])))
        view.put(held("r1", "a"), "changed")
        view.keep()
        transaction.save(view.changes([]))
        raise Abandoned
    assert found_under(store, "a") == []
    put(store, held("r1", "a"))
    assert found_under(store, "a") == ["r1"]


def test_prefixes_of_other_spaces_and_accounts_are_not_found(store):
    put(store, held("r1", "a"), held("r2", "a", space="acme/shop2"))
    put(store, Reservation("other", "r3", space=SPACE, paths='["a"]', proof="hash", expires_at=START + 1))
    assert found_under(store, "a") == ["r1"]
    assert found_under(store, "", below=True) == ["r1"]


def test_a_touched_row_changes_without_an_event_and_without_a_new_version(store):
    put(store, waiting())
    (row,) = every(store, Reservation)
    later = replace(row, waits_until=row.waits_until + 5)
    change(store, later, touch=True)
    assert every(store, Reservation) == [later]
    assert [event.version for event in every(store, Event)] == [1]
    with store.read() as reader:
        assert reader.next_deadline() == later.waits_until
        assert reader.log_bounds(ACCOUNT) == (0, 1)
    check_log(store)


def test_a_touch_and_a_change_of_one_batch_are_both_saved(store):
    put(store, waiting())
    (row,) = every(store, Reservation)
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(rows=(row.key,))])))
        view.touch(replace(row, waits_until=row.waits_until + 5))
        view.keep()
        touched = view.find(Reservation, ACCOUNT, row.id)
        view.put(replace(touched, paths=encode_paths(("z",))), "changed")
        view.touch(replace(view.find(Reservation, ACCOUNT, row.id), waits_until=row.waits_until + 7))
        view.keep()
        transaction.save(view.changes([]))
    (after,) = every(store, Reservation)
    assert (after.version, after.waits_until, paths_of(after)) == (2, row.waits_until + 7, ("z",))
    assert found_under(store, "z") == ["w1"]
    check_log(store)


def test_a_touch_of_a_refused_command_is_undone(store):
    put(store, waiting())
    (row,) = every(store, Reservation)
    change(store, replace(row, waits_until=row.waits_until + 5), touch=True, keep=False)
    assert every(store, Reservation) == [row]


def test_the_use_of_a_space_includes_what_the_batch_changed(store):
    put(store, held("r1"), waiting("w1", "a/b"), held("r2", "x", space="another"))
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(paths=((ACCOUNT, SPACE, "a", True),))])))
        before = view.space_use(ACCOUNT, SPACE)
        view.put(held("r3", "c"), "changed")
        w1 = view.find(Reservation, ACCOUNT, "w1")
        view.put(replace(w1, waits_until=None, ended_at=START, ended_how="left"), "left")
        after = view.space_use(ACCOUNT, SPACE)
        view.undo()
        undone = view.space_use(ACCOUNT, SPACE)
    assert [(use.held, use.waiting) for use in (before, after, undone)] == [(1, 1), (2, 0), (1, 1)]


def test_transactions_that_reserve_in_one_space_follow_each_other(postgres_store):
    """Each of them would otherwise find no conflict. Other spaces are not locked."""
    inside, order = threading.Event(), []

    def reserve(space, name):
        with postgres_store.transaction(1) as transaction:
            transaction.load(AllNeeds.of([Needs(paths=((ACCOUNT, space, name, False),))]), lock_seconds=10)
            order.append(name)
            inside.set()

    with postgres_store.transaction(0) as transaction:
        transaction.load(AllNeeds.of([Needs(paths=((ACCOUNT, SPACE, "first", False),))]))
        elsewhere = threading.Thread(target=reserve, args=("another space", "elsewhere"))
        elsewhere.start()
        elsewhere.join(10)
        assert order == ["elsewhere"]
        inside.clear()
        second = threading.Thread(target=reserve, args=(SPACE, "second"))
        second.start()
        assert not inside.wait(0.3)
        order.append("first")
    second.join(10)
    assert order == ["elsewhere", "first", "second"]
