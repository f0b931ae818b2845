"""Browser sessions, and the reads of the dashboard, on every store."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import session as sessions
from holdfast.core.browser_session import (
    IDLE_TIMEOUT,
    LINK_LIFETIME,
    MAX_LIFETIME,
    MAX_PER_KEY,
    SESSION,
    SIGN_IN_LINK,
    BrowserSession,
    excess_sessions,
    is_expired,
)
from holdfast.core.event import RENEWALS, Event, subject_of
from holdfast.core.row import SECOND
from holdfast.core.task import CLAIMED, Task
from holdfast.store.postgres import PostgresStore
from tests.store.test_task_queries_match_rules import with_examples
from tests.support import ACCOUNT, START, a_lease, a_session, empty, every, put

edges = st.sampled_from([0, LINK_LIFETIME, IDLE_TIMEOUT, MAX_LIFETIME]).flatmap(
    lambda span: st.integers(span - 1, span + 1)
)
session_times = st.builds(
    lambda kind, made, seen: (kind, START - made, START - seen), st.sampled_from([SIGN_IN_LINK, SESSION]), edges, edges
)


def a_browser_session(name="b1", kind=SESSION, account=ACCOUNT, made_at=START, seen_at=START):
    return BrowserSession(name, kind, account, "p1", "hash", made_at=made_at, seen_at=seen_at)


def kept(store, *names):
    with store.read() as reader:
        return [reader.browser_session(name) for name in names]


def test_an_update_of_a_browser_session_changes_only_seen_at(store):
    saved = a_browser_session()
    store.save_browser_session(saved)
    assert kept(store, "b1", "b2") == [saved, None]
    store.update_browser_session("b1", START + SECOND)
    assert kept(store, "b1") == [replace(saved, seen_at=START + SECOND)]
    store.update_browser_session("b1", START)
    assert kept(store, "b1") == [replace(saved, seen_at=START + SECOND)], "an older time replaces no newer one"


def test_an_update_of_a_browser_session_that_has_ended_does_not_bring_it_back(store):
    store.save_browser_session(a_browser_session())
    store.take_browser_session("b1")
    store.update_browser_session("b1", START + SECOND)
    assert kept(store, "b1") == [None]


def test_a_browser_session_is_taken_once(store):
    store.save_browser_session(a_browser_session(kind=SIGN_IN_LINK))
    assert store.take_browser_session("b1") == a_browser_session(kind=SIGN_IN_LINK)
    assert store.take_browser_session("b1") is None
    assert kept(store, "b1") == [None]


def test_exactly_one_of_many_callers_takes_a_sign_in_link(store, database, clock):
    other = PostgresStore(database, clock) if store.name == "postgres" else store
    for round_number in range(5):
        store.save_browser_session(a_browser_session(f"b{round_number}", SIGN_IN_LINK))
        with ThreadPoolExecutor(8) as pool:
            shown = pool.map(
                lambda place, name=f"b{round_number}": (store, other)[place % 2].take_browser_session(name), range(8)
            )
            assert sum(taken is not None for taken in shown) == 1
    if other is not store:
        other.close()


@with_examples
@given(rows=st.lists(session_times, max_size=8))
def test_a_store_forgets_expired_browser_sessions(store, clock, rows):
    empty(store)
    clock.now = START
    saved = [
        a_browser_session(f"b{place}", kind, made_at=made, seen_at=seen)
        for place, (kind, made, seen) in enumerate(rows)
    ]
    for browser_session in saved:
        store.save_browser_session(browser_session)
    assert store.forget_browser_sessions() == sum(is_expired(browser_session, START) for browser_session in saved)
    left = kept(store, *(browser_session.id for browser_session in saved))
    assert left == [None if is_expired(browser_session, START) else browser_session for browser_session in saved]


def test_erasing_an_account_deletes_its_browser_sessions(store):
    store.save_browser_session(a_browser_session("b1", account="gone"))
    store.save_browser_session(a_browser_session("b2"))
    store.erase("gone")
    assert kept(store, "b1", "b2") == [None, a_browser_session("b2")]


# -- reads -------------------------------------------------------------------------------------------------------


def test_live_sessions_are_those_that_core_calls_live(store, clock):
    ends = [START - 1, START, START + 1, START + 60 * SECOND]
    rows = [a_session(f"s{place}", ends=at) for place, at in enumerate(ends)]
    rows += [a_session("s8", ended_at=START - 1, ended_how="deleted"), a_session("s9", account="other")]
    put(store, *rows)
    live = [row.id for row in rows if row.account == ACCOUNT and sessions.is_live(row, START)]
    with store.read() as reader:
        assert [row.id for row in reader.sessions(ACCOUNT, "", 10, live=True)] == live == ["s2", "s3"]
        assert [row.id for row in reader.sessions(ACCOUNT, "s2", 10, live=True)] == ["s3"]
        assert [row.id for row in reader.sessions(ACCOUNT, "", 1, live=True)] == ["s2"]


def test_only_the_newest_browser_sessions_of_a_key_are_kept(store):
    made = [number * 7 % 5 for number in range(MAX_PER_KEY + 6)]
    others = [
        replace(a_browser_session("other", made_at=0), key_hash="another"),
        a_browser_session("link", SIGN_IN_LINK, made_at=0),
    ]
    saved = [a_browser_session(f"b{number:02d}", made_at=START + age) for number, age in enumerate(made)]
    known = {browser_session.id: browser_session for browser_session in others}
    for browser_session in [*others, *saved]:
        store.save_browser_session(browser_session)
        known[browser_session.id] = browser_session
        for gone in excess_sessions(known.values(), browser_session):
            del known[gone.id]
    assert {
        browser_session.id
        for browser_session in kept(store, *(each.id for each in [*others, *saved]))
        if browser_session
    } == set(known)
    assert len(known) == MAX_PER_KEY + len(others)


def test_held_tasks_are_listed_in_the_order_in_which_they_expire(store):
    held = [
        Task(ACCOUNT, f"t{left}", type=f"type{left}", state=CLAIMED, proof="p", expires_at=START + left)
        for left in (3, 1, 2)
    ]
    put(store, *held, Task(ACCOUNT, "t9", type="x"), replace(held[0], account="other"), kind="created")
    with store.read() as reader:
        assert [task.id for task in reader.next_to_expire(ACCOUNT, 2)] == ["t1", "t2"]


def test_queues_are_listed_with_their_oldest_tasks_oldest_first(store):
    rows = [Task(ACCOUNT, f"t{place}", type="x", created_at=START + place) for place in (3, 1, 2)]
    put(store, *rows, Task(ACCOUNT, "t0", type="x", state="completed"), Task("other", "t00", type="x"), kind="created")
    put(store, *(Task(ACCOUNT, f"u{name}", type=name, created_at=START) for name in ("z", "y")), kind="created")
    with store.read() as reader:
        assert reader.queues(ACCOUNT, 9) == [("y", 1, START), ("z", 1, START), ("x", 3, START + 1)]
        assert reader.queues(ACCOUNT, 2) == [("y", 1, START), ("z", 1, START)]


def test_recent_events_and_events_per_minute_match_the_log(store, clock):
    lease = a_lease("job")
    for kind in ("claimed", "renewed", "renewed", "released", "claimed", "renewed", "expired"):
        lease = replace(lease, note=f"{lease.version}")
        put(store, lease, kind=kind)
        lease = every(store, type(lease))[0]
        clock.advance(40)
    log = [event for event in every(store, Event) if event.account == ACCOUNT]
    news = [event for event in reversed(log) if event.kind not in RENEWALS]
    counted = Counter((event.at // (60 * SECOND), event.kind) for event in log if event.seq > 2)
    with store.read() as reader:
        assert reader.recent_events(ACCOUNT, subject_of(lease), 100) == news
        assert [event.kind for event in news] == ["lease.expired", "lease.claimed", "lease.released", "lease.claimed"]
        assert reader.recent_events(ACCOUNT, subject_of(lease), 2) == news[:2]
        assert reader.recent_events("other", subject_of(lease), 2) == []
        assert reader.changes(ACCOUNT, 0, log[-1].seq + 1, 100) == news
        assert reader.changes(ACCOUNT, news[2].seq, news[0].seq, 100) == news[1:2]
        assert reader.changes(ACCOUNT, 0, log[-1].seq + 1, 2, 10**6) == news[:2]
        assert reader.changes(ACCOUNT, 0, log[-1].seq + 1, 9, 1) == news[:1]
        assert reader.changes("other", 0, 10**6, 9) == []
        assert reader.events_per_minute(ACCOUNT, 2) == [(*key, counted[key]) for key in sorted(counted)]
