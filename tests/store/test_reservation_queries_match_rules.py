"""Each query of reservations selects what its rule in core selects, over generated rows with independent times."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core.reservation.patterns import ancestors, any_overlap, may_overlap, parse
from holdfast.core.reservation.row import (
    MODES,
    Reservation,
    SpaceUse,
    encode_paths,
    indexed_prefixes,
    is_due,
    is_open,
    is_waiting,
    patterns_in,
)
from holdfast.engine.verbs.reservations import paths_needed
from tests.proof_size import FULL
from tests.support import START, empty, load_view, put

EXAMPLES = 500 if FULL else 4

accounts = st.sampled_from(["a", "b"])
spaces = st.sampled_from(["s", "s/t", "é"])
instants = st.integers(START - 2, START + 2)
segments = st.sampled_from(["a", "a-", "a.", "a0", "b", "é", "\uff5e", "\U0001f600", "a%", "a_"])
"""Some sort just before and after the slash, and some differently by their bytes in UTF-8 and in UTF-16."""
ends = st.sampled_from([[], [""], ["*"], ["**"], ["?"], ["**", "x"], ["a*", "b"]])


@st.composite
def patterns(draw):
    fixed, rest = draw(st.lists(segments, max_size=3)), draw(ends)
    return "/".join([*fixed, *rest]).strip("/") + ("/" if rest == [""] and fixed else "") or "**"


path_lists = st.lists(patterns(), min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def reservation_rows(draw):
    row = Reservation(
        draw(accounts), f"r{draw(st.integers(0, 30)):02}", space=draw(spaces), mode=draw(st.sampled_from(MODES)),
        paths=encode_paths(draw(path_lists)), arrived_at=draw(instants), claimed_at=draw(st.none() | instants),
        session=draw(st.sampled_from([None, "s1", "s2"])),
    )  # fmt: skip
    state = draw(st.sampled_from(["held", "held", "waits", "waits", "ended"]))
    if state == "held":
        return replace(row, proof="p", expires_at=draw(instants))
    if state == "waits":
        return replace(row, waits_until=draw(instants))
    return replace(row, ended_at=draw(instants), ended_how="released")


row_lists = st.lists(reservation_rows(), min_size=4, max_size=12, unique_by=lambda row: row.key)


@pytest.fixture
def fresh(store):
    """Empties the store before each example."""

    def fill(rows):
        empty(store)
        put(store, *rows)
        return store

    return fill


def with_examples(test):
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=EXAMPLES, suppress_health_check=checks)(test)


def of_space(rows, account, space):
    return [row for row in rows if (row.account, row.space) == (account, space)]


def may_find(mine, row):
    """By the rule of core; a literal pattern above mine is found too, because stores keep only its prefix."""
    theirs = [replace(pattern, is_literal=False) for pattern in patterns_in(row.paths)]
    return is_open(row) and any(may_overlap(parse(one), other) for one in mine for other in theirs)


HELD = Reservation(
    "a", "r01", space="s", paths=encode_paths(("a/b",)), arrived_at=START, claimed_at=START, proof="p", expires_at=START
)


@with_examples
@given(rows=row_lists, mine=path_lists, space=spaces)
@example(rows=[HELD], mine=("**",), space="s")
def test_loaded_reservations_are_those_whose_patterns_may_overlap(fresh, rows, mine, space):
    patterns = [parse(text) for text in mine]
    view = load_view(fresh(rows), paths=paths_needed("a", space, patterns))
    loaded = {row.key for row in view.open_reservations("a", space)}
    assert loaded == {row.key for row in of_space(rows, "a", space) if may_find(mine, row)}
    overlapping = [row for row in of_space(rows, "a", space) if any_overlap(patterns, patterns_in(row.paths))]
    assert {row.key for row in overlapping if is_open(row)} <= loaded
    assert not view.open_reservations("b", space)


@with_examples
@given(rows=row_lists)
def test_the_use_of_a_space_is_what_core_counts(fresh, rows):
    store = fresh(rows)
    for account, space in {(row.account, row.space) for row in rows} | {("a", "nowhere")}:
        view = load_view(store, paths=((account, space, "elsewhere", False),))
        found = of_space(rows, account, space)
        assert view.space_use(account, space) == SpaceUse(
            held=sum(leases.is_live(row, START) for row in found), waiting=sum(is_waiting(row, START) for row in found)
        )


@with_examples
@given(rows=row_lists, limit=st.integers(1, 12))
def test_due_reservations_are_those_that_core_calls_due(fresh, rows, limit):
    store = fresh(rows)
    overdue = sorted((row.expires_at or row.waits_until, row.key) for row in rows if is_due(row, START))
    first = next((now for now in range(START - 4, START + 5) if any(is_due(row, now) for row in rows)), None)
    with store.read() as reader:
        assert reader.due(limit) == [key for _, key in overdue][:limit]
        assert reader.next_deadline() == first


@with_examples
@given(rows=row_lists, moment=instants)
def test_reservations_held_at_a_moment_are_those_that_core_calls_live_then(fresh, rows, moment):
    with fresh(rows).read() as reader:
        assert reader.held_at(moment) == sorted(row.key for row in rows if leases.is_live(row, moment))


@with_examples
@given(rows=row_lists, space=st.none() | spaces, limit=st.integers(1, 12), after=st.integers(0, 12))
def test_listed_reservations_are_the_open_ones_in_the_order_of_space_and_id(fresh, rows, space, limit, after):
    listed = sorted(
        (row.space.encode(), row.id)
        for row in rows
        if row.account == "a" and is_open(row) and space in {None, row.space}
    )
    start = (listed[after - 1][0].decode(), listed[after - 1][1]) if 0 < after <= len(listed) else ("", "")
    expected = [each for each in listed if each > (start[0].encode(), start[1])][:limit]
    with fresh(rows).read() as reader:
        found = reader.reservations("a", space, start, limit)
        assert [(row.space.encode(), row.id) for row in found] == expected


@with_examples
@given(rows=row_lists, space=spaces, path=st.lists(segments, min_size=1, max_size=4).map("/".join))
def test_reservations_that_cover_a_path_are_found_by_the_prefixes_above_it(fresh, rows, space, path):
    above = ancestors(path)
    expected = [row for row in of_space(rows, "a", space) if not indexed_prefixes(row).isdisjoint(above)]
    with fresh(rows).read() as reader:
        found = reader.reservations_covering("a", space, above)
    assert [row.id for row in found] == sorted(row.id for row in expected)
    matching = {row.id for row in of_space(rows, "a", space) for each in patterns_in(row.paths) if each.matches(path)}
    assert {row.id for row in rows if row.id in matching and is_open(row) and row.account == "a"} <= {
        row.id for row in found
    }


@with_examples
@given(rows=row_lists)
def test_the_reservations_of_a_session_are_those_that_it_holds(fresh, rows):
    store = fresh(rows)
    for session in (("a", "s1"), ("b", "s2")):
        mine = [row for row in rows if (row.account, row.session) == session and leases.is_held(row)]
        view = load_view(store, holdings=(session,))
        assert [row.key for row in view.reservations_of(*session)] == sorted(row.key for row in mine)
        with store.read() as reader:
            assert [row.key for row in reader.holdings(Reservation, session, "", 50)] == sorted(row.key for row in mine)
