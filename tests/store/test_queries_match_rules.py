"""Each WHERE selects what its rule in core selects, over generated rows with independent times."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core.lease import ELECTION, JOB, LOCK, Lease, proof_of
from holdfast.core.principal import (
    ALL_SCOPES,
    ISSUED,
    LOCAL,
    MACHINE,
    ROOT,
    ROTATED,
    STATIC,
    WORK_SCOPES,
    Principal,
    is_user,
)
from holdfast.core.session import Session
from tests.proof_size import FULL
from tests.support import START, DrivenClock, empty, load_view, put

EXAMPLES = 500 if FULL else 6

accounts = st.sampled_from(["a", "b"])
instants = st.integers(START - 2, START + 2)
principals = st.sampled_from(["p1", "p2"])
prefixes = st.sampled_from(["", "a", "a%", "a_", "b", "\u00e9", "\U0010ffff", "__election/"])
job_names = st.text(st.sampled_from("ab%_\u00e9\ue000\U0010ffff"), min_size=1, max_size=3)
elections = st.sampled_from(["__election/abcdefgh", "__election/zzzzzzzz"])


@st.composite
def lease_rows(draw):
    kind = draw(st.sampled_from([None, JOB, LOCK, ELECTION]))
    row = Lease(draw(accounts), draw(elections if kind == ELECTION else job_names))
    row = replace(row, done_at=draw(st.none() | instants), done_until=draw(st.none() | instants))
    if kind is None:
        return replace(row, available_at=draw(st.none() | instants))
    return replace(
        row,
        kind=kind,
        principal=draw(principals),
        proof=proof_of("x"),
        claimed_at=draw(instants),
        expires_at=draw(instants),
        session=draw(st.none() | st.sampled_from(["s1", "s2"])),
        ephemeral=draw(st.booleans()),
        available_at=draw(st.none() | instants),
    )


@st.composite
def session_rows(draw):
    return Session(
        draw(accounts),
        draw(st.sampled_from(["s1", "s2", "s3"])),
        principal=draw(principals),
        opened_at=draw(instants),
        expires_at=draw(instants),
        ended_at=draw(st.none() | instants),
        ended_how=draw(st.sampled_from(["expired", "deleted"])),
    )


@st.composite
def principal_rows(draw):
    number = draw(st.integers(0, 5))
    revoked = draw(st.none() | instants)
    # A hash belongs to one valid principal; revoked ones may share it.
    key = f"k{number}" if revoked is None else draw(st.sampled_from(["k0", "k1", None]))
    return Principal(
        draw(accounts),
        f"p{number}",
        key_hash=key,
        revoked_at=revoked,
        source=draw(st.sampled_from([ROOT, STATIC, ISSUED, LOCAL, ROTATED, MACHINE])),
        scopes=draw(st.sampled_from([WORK_SCOPES, ALL_SCOPES, "admin", "jobs admin", "jobs admin read", "read"])),
    )


def by_key(row):
    return row.key


lease_lists = st.lists(lease_rows(), min_size=3, max_size=10, unique_by=by_key)
session_lists = st.lists(session_rows(), min_size=2, max_size=5, unique_by=by_key)
principal_lists = st.lists(principal_rows(), max_size=5, unique_by=lambda row: row.id)


@pytest.fixture
def fresh(sql_store):
    """Empties the store before each example."""

    def fill(*rows):
        empty(sql_store)
        if rows:
            put(sql_store, *rows)
        return sql_store

    return fill


def with_examples(test):
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=EXAMPLES, suppress_health_check=checks)(test)


@with_examples
@given(held=lease_lists, open_ones=session_lists, limit=st.integers(1, 12))
def test_due_rows_are_those_that_core_calls_due(fresh, held, open_ones, limit):
    store = fresh(*held, *open_ones)
    overdue = [(row.expires_at, row.key) for row in held if leases.is_due(row, START)]
    overdue += [(row.expires_at, row.key) for row in open_ones if sessions.is_due(row, START)]
    with store.read() as reader:
        assert reader.due(limit) == [key for _, key in sorted(overdue)][:limit]


@with_examples
@given(held=lease_lists, open_ones=session_lists)
def test_the_next_deadline_is_the_first_instant_at_which_a_row_is_due(fresh, held, open_ones):
    store = fresh(*held, *open_ones)
    with store.read() as reader:
        deadline = reader.next_deadline()
    moments = range(START - 4, START + 5)
    first = next(
        (
            now
            for now in moments
            if any(leases.is_due(row, now) for row in held) or any(sessions.is_due(row, now) for row in open_ones)
        ),
        None,
    )
    assert deadline == first


@with_examples
@given(held=lease_lists)
def test_live_locks_and_elections_are_those_that_core_counts(fresh, held):
    store = fresh(*held)
    owners = [(account, principal) for account in "ab" for principal in ("p1", "p2")]
    view = load_view(store, lock_counts=tuple(owners), election_counts=("a", "b"))
    for account, principal in owners:
        counted = [row for row in held if (row.account, row.principal) == (account, principal)]
        assert view.live_locks(account, principal) == sum(
            leases.counts_toward_limit(row, LOCK, START) for row in counted
        )
    for account in "ab":
        counted = [row for row in held if row.account == account]
        assert view.live_elections(account) == sum(leases.counts_toward_limit(row, ELECTION, START) for row in counted)


@with_examples
@given(held=lease_lists, prefix=prefixes, after=st.just("") | job_names, limit=st.integers(1, 10))
def test_listed_leases_are_those_that_core_calls_live(fresh, held, prefix, after, limit):
    store = fresh(*held)
    chosen = [
        row.id
        for row in held
        if row.account == "a"
        and leases.is_live(row, START)
        and row.id.startswith(prefix)
        and row.id.encode() > after.encode()
    ]
    with store.read() as reader:
        assert [row.id for row in reader.leases("a", prefix, after, limit)] == sorted(chosen, key=str.encode)[:limit]
        assert reader.counts("a").live_leases == sum(row.account == "a" and leases.is_live(row, START) for row in held)


@with_examples
@given(held=lease_lists, prefix=prefixes, limit=st.integers(1, 10), keep=st.integers(0, 3))
def test_listed_done_jobs_are_those_that_core_calls_done(fresh, held, prefix, limit, keep):
    store = fresh(*held)
    own = [row for row in held if row.account == "a"]
    chosen = [row.id for row in own if leases.is_done(row, START) and row.id.startswith(prefix)]
    newest = sorted((row for row in own if row.done_at is not None), key=lambda row: -row.done_at)
    with store.read() as reader:
        found = reader.leases("a", prefix, "", limit, done=True)
        assert [row.id for row in found] == sorted(chosen, key=str.encode)[:limit]
        assert len(reader.oldest_done("a", keep, limit)) == len(newest[keep : keep + limit])


@with_examples
@given(held=lease_lists, moment=instants)
def test_jobs_held_at_a_moment_are_those_that_core_calls_live_then(fresh, held, moment):
    store = fresh(*held)
    with store.read() as reader:
        assert reader.held_at(moment) == sorted(row.key for row in held if leases.counts_toward_limit(row, JOB, moment))


@with_examples
@given(held=lease_lists)
def test_the_leases_of_a_session_are_its_ephemeral_leases(fresh, held):
    store = fresh(*held)
    for account in "ab":
        for session in ("s1", "s2"):
            view = load_view(store, holdings=((account, session),))
            mine = [row for row in held if (row.account, row.session) == (account, session)]
            assert {row.key for row in view.leases_of(account, session)} == {
                row.key for row in mine if row.ephemeral and leases.is_held(row)
            }
            with store.read() as reader:
                assert reader.count_session_leases(account, session) == len(mine)


@with_examples
@given(known=principal_lists)
def test_a_key_belongs_to_the_principal_that_has_it_and_is_not_revoked(fresh, known):
    store = fresh(*known)
    with store.read() as reader:
        for key in ("k0", "k1", "k2", "none"):
            valid = [row.id for row in known if row.key_hash == key and row.revoked_at is None]
            found = reader.principal(key)
            assert ([] if found is None else [found.id]) == valid
        for account in "ab":
            users = [row for row in known if row.account == account and is_user(row)]
            assert reader.counts(account).users == len(users)


def test_the_test_clock_is_the_time_passed_to_the_rules(sql_store, clock):
    assert isinstance(clock, DrivenClock)
    with sql_store.read() as reader:
        assert reader.now == START
