"""A log with a marked gap, on every store: verified, cleaned and read like any other; an unmarked gap is an error."""

from __future__ import annotations

import pytest
from msgspec.structs import astuple

from holdfast.core.errors import CursorTooOld
from holdfast.core.event import Event
from holdfast.core.event_filter import EventFilter
from holdfast.core.log_gap import MIN_JUMP, RESTORED, restore_event
from holdfast.core.plan import DAY
from holdfast.core.row import SECOND
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.retention import Retention
from holdfast.engine.verify import verify
from holdfast.store.sqlite import queries
from holdfast.transport.http.api.events import _search
from holdfast.transport.http.streams.hub import read_page
from tests.support import ACCOUNT, START, check_log, claim, every, release, transact

EVERYTHING = EventFilter()


@pytest.fixture
def restored_store(store):
    """A store that was restored after its fourth event, with further events."""
    transact(store, claim("a", "la"), claim("b", "lb"))
    transact(store, release("a", "la"), release("b", "lb"))
    mark_gap(store)
    transact(store, claim("a", "lc"))
    return store


def mark_gap(store, last=4):
    """Mark a gap in the log as a restore does, after event `last`."""
    mark = restore_event(ACCOUNT, last, START, START)
    if store.name == "memory":
        store.log[ACCOUNT].append(mark)
        store.log_bounds[ACCOUNT] = (0, mark.seq)
    elif store.name == "sqlite":
        with store.transaction():
            store._writer.execute(queries.insert_event(1), astuple(mark))
            store._writer.execute("UPDATE event_counters SET seq = ?", (mark.seq,))
            store._writer.execute("COMMIT; BEGIN")
    else:
        with store.read() as reader, reader.transaction():
            places = ", ".join(["?"] * len(Event.__struct_fields__))
            columns = ", ".join(Event.__struct_fields__)
            reader.execute(f"INSERT INTO events ({columns}) VALUES ({places})", *astuple(mark))
            reader.execute("UPDATE event_counters SET seq = ?", mark.seq)


def seqs(store, after):
    with store.read() as reader:
        return [event.seq for event in _search(reader, ACCOUNT, after, EVERYTHING, 100).events]


def mark_of(store):
    return next(event for event in every(store, Event) if event.kind == RESTORED)


def test_a_marked_gap_is_valid_and_read_only_from_a_cursor_at_its_edge(restored_store):
    assert verify(restored_store).differences == []
    check_log(restored_store)
    mark = mark_of(restored_store).seq
    assert mark > MIN_JUMP
    assert seqs(restored_store, 0) == [1, 2, 3, 4, mark, mark + 1]
    assert seqs(restored_store, 4) == seqs(restored_store, mark - 1) == [mark, mark + 1]
    for cursor in (5, MIN_JUMP, mark - 2):
        with pytest.raises(CursorTooOld) as refused:
            seqs(restored_store, cursor)
        assert refused.value.facts["oldest"] == mark


def test_streams_cross_a_marked_gap_only_from_a_cursor_at_its_edge(restored_store):
    def page(cursor):
        with restored_store.read() as reader:
            return [event.seq for event in read_page(reader, ACCOUNT, cursor, 500, 2**20)[0]]

    mark = mark_of(restored_store).seq
    assert page(0) == [1, 2, 3, 4]
    assert page(4) == page(mark - 1) == [mark, mark + 1]
    for cursor in (5, MIN_JUMP, mark - 2):
        with pytest.raises(CursorTooOld) as refused:
            page(cursor)
        assert refused.value.facts["oldest"] == mark


def test_a_gap_whose_mark_names_another_event_is_a_difference(store):
    transact(store, claim("a", "la"), claim("b", "lb"))
    mark_gap(store, last=7)
    assert verify(store).differences == [f"{ACCOUNT}: event {seq} is missing from the log" for seq in range(3, 8)]
    with pytest.raises(AssertionError, match="nothing tells why"):
        check_log(store)


def test_retention_removes_a_mark_like_any_other_event(restored_store, clock):
    mark = mark_of(restored_store).seq
    clock.advance(100 * DAY // SECOND)
    cleanup = Cleanup(
        restored_store,
        lambda commands: transact(restored_store, *commands) if commands else [],
        Retention(tasks=0, events=90 * DAY, names=0),
    )
    cleanup.run()
    with restored_store.read() as reader:
        floor, _ = reader.log_bounds(ACCOUNT)
    assert floor >= mark
    assert verify(restored_store).differences == []
    check_log(restored_store)
