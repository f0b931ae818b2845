"""The store interface, reads: lists in bytewise order, exact prefixes, exact deadlines."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import Missing
from holdfast.core.event import without_repeated_renewals
from holdfast.core.lease import LOCK, Lease
from holdfast.core.page import record_size, take_bytes
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.core.task import CANCELLED, PENDING, Task
from holdfast.core.webhooks.delivery import Delivery
from holdfast.core.webhooks.webhook import Webhook
from holdfast.store.contract import Counts, TaskPath, Totals
from holdfast.store.contract.deliveries import CursorMove
from holdfast.store.sql.reader import after_prefix
from tests.support import ACCOUNT, ALICE, BOB, START, a_lease, a_session, put

NAMES = [
    "a", "a%", "a%b", "a_", "a_b", "ab", "axb", "A", "B", "Z", "\u00e4", "\u00e9", "\u65e5\u672c", "\ud7ff", "\ue000",
    "\uffff", "\U0001f600", "\U0010ffff", "\U0010ffffx", "z", "a/b", "a\\b", "'",
]  # fmt: skip
BYTEWISE = sorted(NAMES, key=str.encode)


def listed(store, prefix="", after="", limit=100):
    with store.read() as reader:
        return [lease.id for lease in reader.leases(ACCOUNT, prefix, after, limit)]


def test_leases_are_listed_bytewise(store):
    put(store, *map(a_lease, NAMES))
    assert listed(store) == BYTEWISE


def test_a_prefix_is_matched_literally(store):
    put(store, *map(a_lease, NAMES))
    for prefix in [*NAMES, "b", "a%%", "%", "_", "\U0001f601"]:
        assert listed(store, prefix) == [name for name in BYTEWISE if name.startswith(prefix)], prefix


def test_pages_have_no_gaps_or_duplicates(store):
    put(store, *map(a_lease, NAMES))
    for size in (1, 4):
        pages, after = [], ""
        while page := listed(store, after=after, limit=size):
            assert len(page) <= size
            pages += page
            after = page[-1]
        assert pages == BYTEWISE


def test_a_page_within_a_prefix_continues_after_its_cursor(store):
    put(store, *map(a_lease, NAMES))
    assert listed(store, "a", "a%", 2) == ["a%b", "a/b"]
    assert listed(store, "a", "A") == [name for name in BYTEWISE if name.startswith("a")]
    assert listed(store, "a", "b") == []


def test_only_live_leases_of_the_account_are_listed(store):
    put(
        store, a_lease("live", ends=START + 1), a_lease("run out", ends=START), a_lease("free", ends=None),
        a_lease("abroad", account="other"),
    )  # fmt: skip
    assert listed(store) == ["live"]


@given(prefix=st.text(max_size=3), text=st.text(max_size=5))
def test_the_upper_bound_of_a_prefix_is_exact(prefix, text):
    try:
        raw = text.encode()
        prefix.encode()
    except UnicodeEncodeError:
        return
    end = after_prefix(prefix)
    between = raw >= prefix.encode() and (end is None or raw < end.encode())
    assert between == text.startswith(prefix)


def test_due_rows_are_longest_overdue_first_and_limited(store, clock):
    put(
        store, a_lease("late", ends=START - 1), a_lease("just now", ends=START), a_lease("not yet", ends=START + 1),
        a_lease("free", ends=None), a_lease("latest", ends=START - 5, account="other", kind=LOCK),
        a_session("over", ends=START - 3), a_session("tidied", ends=START - 9, ended_at=START - 8, ended_how="expired"),
        a_session("alive", ends=START + 1),
    )  # fmt: skip
    with store.read() as reader:
        due = reader.due(100)
        assert due == [
            ("leases", "other", "latest"), ("sessions", ACCOUNT, "over"), ("leases", ACCOUNT, "late"),
            ("leases", ACCOUNT, "just now"),
        ]  # fmt: skip
        assert reader.due(2) == due[:2]
    clock.now += 1
    with store.read() as reader:
        assert {key[2] for key in reader.due(100)} == {"latest", "over", "late", "just now", "not yet", "alive"}


def test_the_next_deadline_is_the_nearest_of_leases_and_open_sessions(store):
    with store.read() as reader:
        assert reader.next_deadline() is None
    put(store, a_lease("free", ends=None), a_session("tidied", ends=START + 1, ended_at=START, ended_how="deleted"))
    with store.read() as reader:
        assert reader.next_deadline() is None
    put(store, a_lease("job", ends=START + 9))
    with store.read() as reader:
        assert reader.next_deadline() == START + 9
    put(store, a_session("open", ends=START + 5))
    with store.read() as reader:
        assert reader.next_deadline() == START + 5


def test_counts_are_of_live_leases_and_users(store):
    put(
        store,
        ALICE,
        BOB,
        Principal(ACCOUNT, "gone", key_hash="x", revoked_at=1),
        Principal("other", "abroad", key_hash="y"),
        a_lease("1"),
        a_lease("2", kind=LOCK),
        a_lease("3", ends=START),
        a_lease("4", account="other"),
    )
    with store.read() as reader:
        assert reader.counts(ACCOUNT) == Counts(live_leases=2, users=2)


def test_rows_held_at_an_instant_exclude_locks_and_free_names(store):
    put(
        store, a_lease("job", ends=START), a_lease("lock", kind=LOCK), a_lease("free", ends=None),
        a_lease("abroad", account="a-first"),
    )  # fmt: skip
    with store.read() as reader:
        assert reader.held_at(START - 1) == [("leases", "a-first", "abroad"), ("leases", ACCOUNT, "job")]
        assert reader.held_at(START) == [("leases", "a-first", "abroad")]


def test_a_key_belongs_to_one_principal_until_it_is_revoked(store):
    put(store, ALICE, Principal(ACCOUNT, "former", key_hash=BOB.key_hash, revoked_at=1))
    with store.read() as reader:
        assert reader.principal(ALICE.key_hash).id == ALICE.id
        assert reader.principal(BOB.key_hash) is None
        assert reader.principal("") is None
        assert [row.id for row in reader.principals(ACCOUNT)] == ["former", ALICE.id]
        assert reader.principals("other") == []


def test_a_session_is_found_by_its_account_and_id_and_counts_its_leases(store):
    put(
        store, a_session("s1"), a_session("s2", account="other"), a_lease("1", session="s1", ephemeral=True),
        a_lease("2", session="s1"),
    )  # fmt: skip
    with store.read() as reader:
        assert reader.row(Session, ACCOUNT, "s1").id == "s1"
        assert reader.row(Session, ACCOUNT, "s2") is None
        assert reader.row(Session, "other", "s1") is None
        assert reader.count_session_leases(ACCOUNT, "s1") == 2
        assert reader.count_session_leases("other", "s1") == 0
        assert reader.row(Lease, "other", "1") is None


def test_the_log_is_read_from_a_cursor_and_by_subject(store):
    for number in range(3):
        put(store, a_lease("x", ttl=number), a_lease("y", ttl=number))
    with store.read() as reader:
        assert [event.seq for event in reader.events(ACCOUNT, 0, 4)] == [1, 2, 3, 4]
        assert [event.seq for event in reader.events(ACCOUNT, 4, 100)] == [5, 6]
        assert reader.events(ACCOUNT, 6, 100) == []
        assert reader.events("other", 0, 100) == []
        assert [(event.seq, event.version) for event in reader.history(ACCOUNT, "lease:y")] == [(2, 1), (4, 2), (6, 3)]
        assert reader.history(ACCOUNT, "lease:z") == []


def test_a_page_of_the_log_ends_with_the_event_that_reaches_its_bytes(store):
    """The databases add up bytes in SQL, core in Python; a letter of several bytes counts as several."""
    for number, note in enumerate(["a", "\u65e5" * 300, "b" * 500, "c", "\U0001f600" * 200, "d"]):
        put(store, a_lease(f"x{number}", note=note))
    with store.read() as reader:
        log = reader.events(ACCOUNT, 0, 100)
        sizes = [record_size(event) for event in log]
        edges = {sum(sizes[:end]) + nudge for end in range(7) for nudge in (-1, 0, 1)}
        for most in sorted(edge for edge in edges if edge > 0):
            for after, limit in ((0, 100), (0, 3), (2, 100)):
                expected = list(take_bytes(log[after : after + limit], most))
                assert reader.events(ACCOUNT, after, limit, most) == expected, (most, after, limit)
        assert len(reader.events(ACCOUNT, 0, 100, 1)) == 1
        assert reader.events(ACCOUNT, 6, 100, 1) == []


def test_a_brief_history_has_only_the_last_of_renewals_in_a_row(store):
    kinds = ["claimed", *["renewed"] * 3, "released", "claimed", "renewed", "extended", *["renewed"] * 2]
    for number, kind in enumerate(kinds):
        put(store, a_lease("x", ttl=number), kind=kind)
    put(store, a_lease("y"), kind="renewed")
    with store.read() as reader:
        brief = reader.brief_history(ACCOUNT, "lease:x")
        assert [event.version for event in brief] == [1, 4, 5, 6, 7, 8, 10]
        assert brief == without_repeated_renewals(reader.history(ACCOUNT, "lease:x"))
        for after in range(11):
            assert reader.brief_history(ACCOUNT, "lease:x", after) == [each for each in brief if each.version > after]
        assert [event.version for event in reader.brief_history(ACCOUNT, "lease:x", 1, 2)] == [4, 5]


def test_every_list_ends_with_the_record_that_reaches_its_bytes(store):
    texts = [f'"{text}"' for text in ("a", "\u65e5" * 300, "b" * 500, "\U0001f600" * 200)]
    put(
        store,
        *(a_lease(f"x{number}", checkpoint=text, session="s1", ephemeral=True) for number, text in enumerate(texts)),
        *(a_session(f"s{number}", name="agent", context=text) for number, text in enumerate(texts)),
        *(Task(ACCOUNT, f"t{n}", type="ab"[n % 2], tag="red", unique_key="k", state=CANCELLED, payload=text,
               session="s1", waits_for="room") for n, text in enumerate(texts)),
        Webhook(ACCOUNT, "hook", url="https://example.com", family="standard", events="[]", principal="p"),
    )  # fmt: skip
    moves = [Delivery(ACCOUNT, "hook", n, f"task:{n}", "task.created", text, START) for n, text in enumerate(texts)]
    store.deliveries.advance_cursors([CursorMove((ACCOUNT, "hook"), None, 9, tuple(moves))])
    put(store, a_lease("x0", note="c"))
    paths = [TaskPath(), TaskPath("a"), TaskPath(state=CANCELLED), TaskPath(tag="red"), TaskPath(unique_key="k")]
    paths.append(TaskPath(waits_for="room"))
    with store.read() as reader:
        lists = [
            partial(reader.rows_after, Lease, "", ""),
            partial(reader.leases, ACCOUNT, "", ""),
            partial(reader.sessions, ACCOUNT, ""),
            partial(reader.sessions, ACCOUNT, "", live=True),
            partial(reader.holdings, Lease, (ACCOUNT, "s1"), "x0"),
            partial(reader.holdings, Task, (ACCOUNT, "s1"), "t0"),
            partial(reader.held_by, Lease, (ACCOUNT, ALICE.id), ""),
            partial(reader.held_by, Session, (ACCOUNT, ALICE.id), "s0"),
            partial(reader.history, ACCOUNT, "lease:x0", 0),
            partial(reader.events_of_request, ACCOUNT, "", 0),
            *(partial(reader.tasks, ACCOUNT, path, "~") for path in paths),
        ]
        check_byte_limits(lists)
    check_byte_limits([partial(store.deliveries.page, (ACCOUNT, "hook"), None, 9)])


def check_byte_limits(lists):
    """Each list ends with the record that reaches its bytes, at every size around the sum of its first records."""
    for read in lists:
        everything = read(limit=100, max_bytes=10**9)
        assert len(everything) > 1
        sizes = [record_size(record) for record in everything]
        for most in sorted({max(sum(sizes[:end]) + nudge, 1) for end in range(4) for nudge in (-1, 0, 1)}):
            for limit in (2, 100):
                page = read(limit=limit, max_bytes=most)
                assert page == list(take_bytes(everything[:limit], most)), (read, most, limit)


@pytest.mark.parametrize("seconds", [0, 1, 3600])
def test_a_reader_has_the_time_of_the_store(store, clock, seconds):
    clock.advance(seconds)
    with store.read() as reader:
        assert reader.now == START + seconds * SECOND


def test_totals_are_over_all_accounts(store):
    with store.read() as reader:
        assert reader.totals() == Totals(live_leases=0, tasks={})
    put(
        store, a_lease("1"), a_lease("2", kind=LOCK), a_lease("3", account="other"), a_lease("4", ends=START),
        a_lease("5", ends=None), Task(ACCOUNT, "t1", type="x"), Task(ACCOUNT, "t2", type="y"),
        Task("other", "t1", type="x"), Task("other", "t2", type="x", state=CANCELLED),
    )  # fmt: skip
    with store.read() as reader:
        assert reader.totals() == Totals(live_leases=3, tasks={PENDING: 3, CANCELLED: 1})


def test_last_grant_finds_the_claim_before_a_version(store):
    """Events after a grant record only what changed, but a lock's webhook message must name its holder."""
    put(store, a_lease("lock", token=1), kind="claimed")
    put(store, a_lease("lock", token=1, note="x"), kind="renewed")
    put(store, a_lease("lock", ends=None, token=1), kind="released")
    put(store, a_lease("lock", token=2), kind="claimed")
    with store.read() as reader:
        found = [reader.last_grant(ACCOUNT, "lease:lock", version) for version in (1, 2, 4, 5)]
        assert [each and each.version for each in found] == [None, 1, 1, 4]
        assert reader.last_grant(ACCOUNT, "lease:other", 9) is None
        assert reader.last_grant("acct", "lease:lock", 9) is None


def test_a_refusal_raised_inside_a_read_keeps_the_connection_for_the_next_read(sql_store):
    with sql_store.read():
        pass
    (connection,) = sql_store._readers
    for _ in range(3):
        with pytest.raises(Missing), sql_store.read():
            raise Missing("there is no such lease")
    assert sql_store._readers == [connection]
    with sql_store.read() as reader:
        assert reader.counts(ACCOUNT).live_leases == 0


def test_a_refusal_raised_inside_a_write_undoes_it_and_keeps_the_connection(postgres_store):
    with postgres_store.read():
        pass
    (connection,) = postgres_store._readers
    with pytest.raises(Missing), postgres_store.write() as (execute, now):
        execute("UPDATE state SET alive_at = ?", now)
        raise Missing("there is no such lease")
    assert postgres_store._readers == [connection]
    assert postgres_store.last_beat() is None


def test_reads_inside_a_snapshot_see_one_state(store):
    """A change between two of them is seen by neither; memory lets nobody write meanwhile."""
    put(store, a_session("s1"), a_lease("job", session="s1"))
    with store.read() as reader, reader.snapshot():
        before = reader.row(Session, ACCOUNT, "s1")
        if store.name != "memory":
            put(store, a_session("s1", ended_at=START), a_lease("job", ends=None))
        assert reader.row(Session, ACCOUNT, "s1") == before
        assert reader.row(Lease, ACCOUNT, "job").session == "s1"
    with store.read() as reader:
        assert (reader.row(Lease, ACCOUNT, "job").session is None) == (store.name != "memory")


def test_an_error_inside_a_snapshot_leaves_the_reader_as_good_as_it_was(store):
    put(store, a_lease("job"))
    with store.read() as reader:
        with pytest.raises(Missing), reader.snapshot():
            raise Missing("nothing")
        assert reader.row(Lease, ACCOUNT, "job") is not None
