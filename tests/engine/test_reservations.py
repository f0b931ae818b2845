"""Reservations on every store: who gets which paths, and what holders do with them."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from holdfast.core.errors import Invalid, LeaseLost, NotHeld, ReservationMissing, SessionMissing, SpaceFull
from holdfast.core.limits import MAX_RESERVED_PATHS
from holdfast.core.reservation.row import MAX_BROAD, MAX_HELD, SHARED, Reservation, SpaceUse, paths_of
from holdfast.core.row import SECOND
from holdfast.engine.command import Once
from holdfast.engine.sweep import expiry_command
from holdfast.engine.verbs.reservation_claims import Reserved
from holdfast.engine.verbs.reservations import ChangedReservation, FilesHeld
from holdfast.engine.verbs.sessions import BeginSession, CloseSession, HeartbeatSession
from tests.reservation_commands import SPACE, extend, force, release_paths, renew, reserve
from tests.support import (
    ACCOUNT,
    BOB,
    CAUSE,
    check_log,
    every,
    load_view,
    run,
    transact,
)


def in_the_way(outcome):
    assert type(outcome) is FilesHeld
    return [conflict.row.owner for conflict in outcome.conflicts]


def indexed(store):
    """(prefix, reservation) of everything that the store finds by its paths."""
    if store.name == "memory":
        groups = store.indexes.groups
        return sorted((name[3], key[2]) for name in groups if name[0] == "reserved under" for key in groups[name])
    with store.read() as reader:
        return sorted(tuple(found) for found in reader.execute("SELECT prefix, id FROM reserved_paths"))


def test_paths_that_nobody_holds_are_reserved(store):
    outcome = run(store, reserve("a", "src/auth/", "README.md", reason="login", metadata='{"pr":7}'))
    assert type(outcome) is Reserved
    assert (outcome.row.owner, outcome.row.token, outcome.lease_id) == ("a", 1, "a")
    assert outcome.row.expires_at == outcome.now + 60 * SECOND
    assert indexed(store) == [("README.md", "a"), ("src/auth", "a")]
    check_log(store)


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ("src/auth/login.py", "src/auth/login.py"),
        ("src/auth/", "src/auth/login.py"),
        ("src/auth/login.py", "src/auth/"),
        ("src/", "src/auth/*.py"),
        ("src/auth/*.py", "src/"),
        ("**/*.py", "src/auth/login.py"),
        ("src/auth/login.py", "**/login.*"),
        ("docs/**", "docs"),
        ("a/b/c/d", "a/**/d"),
    ],
)
def test_paths_that_overlap_what_another_holds_are_refused(store, held, asked):
    run(store, reserve("a", "other/file", held))
    outcome = run(store, reserve("b", asked, "elsewhere"))
    assert in_the_way(outcome) == ["a"]
    assert outcome.conflicts[0].overlapping_pairs == ((asked, held),)
    assert [row.id for row in every(store, Reservation)] == ["a"]
    assert type(run(store, reserve("b", asked, space="other"))) is Reserved


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ("src/auth/", "src/author.py"),
        ("src/auth/", "src/auth"),
        ("src/*.py", "src/auth/x.py"),
        ("a/b", "a"),
        ("a", "a/b"),
    ],
)
def test_paths_that_do_not_overlap_are_both_reserved(store, held, asked):
    run(store, reserve("a", held))
    assert type(run(store, reserve("b", asked))) is Reserved


def test_shared_reservations_overlap_each_other_but_no_exclusive_one(store):
    run(store, reserve("a", "docs/", mode=SHARED))
    assert type(run(store, reserve("b", "docs/x.md", mode=SHARED))) is Reserved
    assert in_the_way(run(store, reserve("c", "docs/x.md"))) == ["a", "b"]
    run(store, reserve("d", "src/"))
    assert in_the_way(run(store, reserve("e", "src/x.py", mode=SHARED))) == ["d"]


def test_all_or_nothing_is_reserved(store):
    run(store, reserve("a", "one"))
    assert in_the_way(run(store, reserve("b", "two", "one"))) == ["a"]
    assert type(run(store, reserve("c", "two"))) is Reserved


def test_reservations_of_one_batch_see_each_other(store):
    first, second, third = transact(store, reserve("a", "x/"), reserve("b", "x/y"), reserve("c", "z"))
    assert (type(first), type(third)) == (Reserved, Reserved)
    assert in_the_way(second) == ["a"]
    assert third.row.token > first.row.token


def test_an_expired_reservation_is_in_nobodys_way(store, clock):
    run(store, reserve("a", "x/", ttl=5 * SECOND))
    clock.advance(5)
    assert type(run(store, reserve("b", "x/y"))) is Reserved
    assert [row.ended_how for row in every(store, Reservation)] == ["expired", None]
    with pytest.raises(LeaseLost, match="over"):
        run(store, renew("a"))
    check_log(store)


def test_the_sweep_ends_what_has_expired(store, clock):
    run(store, reserve("a", "x/", ttl=5 * SECOND))
    clock.advance(5)
    with store.read() as reader:
        due = reader.due(10)
        assert reader.next_deadline() == clock.now
    assert due == [("reservations", ACCOUNT, "a")]
    assert run(store, expiry_command(due[0])) is True
    assert run(store, expiry_command(due[0])) is False
    assert indexed(store) == []


def test_a_heartbeat_moves_the_deadline(store, clock):
    run(store, reserve("a", "x/", ttl=60 * SECOND))
    clock.advance(30)
    assert run(store, renew("a")).row.expires_at == clock.now + 60 * SECOND
    assert run(store, renew("a", ttl=5 * SECOND)).row.expires_at == clock.now + 5 * SECOND


def test_a_release_frees_all_paths_or_some(store):
    run(store, reserve("a", "x/", "y", "z"))
    assert paths_of(run(store, release_paths("a", "x/", "z")).row) == ("y",)
    assert type(run(store, reserve("b", "x/1", "z"))) is Reserved
    assert in_the_way(run(store, reserve("c", "y"))) == ["a"]
    assert run(store, release_paths("a")).row.ended_how == "released"
    assert type(run(store, reserve("c", "y"))) is Reserved
    assert indexed(store) == [("x/1", "b"), ("y", "c"), ("z", "b")]
    check_log(store)


def test_releasing_the_last_paths_ends_it(store):
    run(store, reserve("a", "x", "y"))
    assert run(store, release_paths("a", "y", "x")).row.ended_how == "released"


def test_a_pattern_that_is_not_reserved_cannot_be_released(store):
    run(store, reserve("a", "x/"))
    with pytest.raises(Invalid, match="'x/y' is not one of the reserved patterns: x/"):
        run(store, release_paths("a", "x/y"))


def test_more_paths_are_added_if_nothing_is_in_the_way(store):
    run(store, reserve("a", "x"))
    run(store, reserve("b", "z"))
    assert paths_of(run(store, extend("a", "y/", "x")).row) == ("x", "y/")
    outcome = run(store, extend("a", "w", "z"))
    assert in_the_way(outcome) == ["b"]
    assert in_the_way(run(store, reserve("c", "y/1"))) == ["a"]
    assert type(run(store, reserve("c", "w"))) is Reserved
    check_log(store)


def test_a_reservation_has_no_more_patterns_than_a_request(memory):
    run(memory, reserve("a", *(f"f{number}" for number in range(MAX_RESERVED_PATHS - 1))))
    with pytest.raises(Invalid, match="at most 20 patterns"):
        run(memory, extend("a", "x", "y"))
    assert len(paths_of(run(memory, extend("a", "x", "f0")).row)) == MAX_RESERVED_PATHS


def test_an_administrator_takes_it_from_its_holder(store):
    run(store, reserve("a", "x"))
    assert type(run(store, force("a"))) is ChangedReservation
    assert type(run(store, reserve("b", "x"))) is Reserved
    with pytest.raises(LeaseLost) as lost:
        run(store, renew("a"))
    assert (lost.value.facts["ended_by"], lost.value.facts["reason"]) == ("admin", "it hangs")
    with pytest.raises(NotHeld):
        run(store, force("a"))
    with pytest.raises(ReservationMissing):
        run(store, force("nothing"))


def test_only_its_lease_id_proves_the_holder(store):
    run(store, reserve("a", "x"))
    for command in (renew("a"), release_paths("a"), extend("a", "y")):
        with pytest.raises(LeaseLost, match="not a lease id"):
            run(store, replace(command, lease_id="b"))
    run(store, release_paths("a"))
    with pytest.raises(LeaseLost, match="already released"):
        run(store, release_paths("a"))
    with pytest.raises(ReservationMissing):
        run(store, renew("nothing"))


def render_reserved(outcome):
    return 200, json.dumps({"reservation_id": outcome.row.id, "lease_id": outcome.lease_id}).encode()


def test_a_repeated_request_gets_the_same_reservation(store, clock):
    same = Once("key-1", "body-1", render_reserved)
    first = run(store, reserve("a", "x", once=same))
    clock.advance(10)
    again = run(store, reserve("b", "x", once=same))
    assert (again.row.id, again.lease_id, again.replayed) == ("a", "a", True)
    assert again.row.expires_at == first.row.expires_at
    run(store, release_paths("a"))
    with pytest.raises(LeaseLost):
        run(store, reserve("b", "x", once=same))


def fill(store, count, pattern="f{}"):
    for first in range(0, count, 50):
        transact(store, *(reserve(f"r{n}", pattern.format(n)) for n in range(first, min(first + 50, count))))


def test_a_full_space_takes_no_more(store):
    fill(store, MAX_HELD)
    with pytest.raises(SpaceFull, match="500 reservations"):
        run(store, reserve("a", "x"))
    assert type(run(store, reserve("a", "x", space="other"))) is Reserved
    run(store, release_paths("r7"))
    assert type(run(store, reserve("b", "x"))) is Reserved
    with pytest.raises(SpaceFull):
        run(store, reserve("c", "y"))


def test_a_space_has_room_for_a_few_patterns_that_begin_with_a_wildcard(store):
    fill(store, MAX_BROAD, "**/f{}")
    with pytest.raises(SpaceFull, match="begins with a wildcard"):
        run(store, reserve("a", "x", "*.md"))
    assert type(run(store, reserve("a", "x"))) is Reserved
    with pytest.raises(SpaceFull):
        run(store, extend("a", "*.md"))


def test_a_batch_counts_its_own_reservations(memory):
    fill(memory, MAX_HELD - 1)
    first, second, _, fourth = transact(
        memory, reserve("a", "x"), reserve("b", "y"), release_paths("a"), reserve("c", "z")
    )
    assert [type(outcome) for outcome in (first, second, fourth)] == [Reserved, SpaceFull, Reserved]


def test_what_a_session_reserved_ends_with_it(store, clock):
    opened = BeginSession(account=ACCOUNT, cause=CAUSE, by=BOB, session_id="s", name="bot", ttl=60 * SECOND,
                          fresh_secret="secret")  # fmt: skip
    run(store, opened)
    outcome = run(store, reserve("a", "x", by=BOB, session="s", ttl=600 * SECOND))
    assert outcome.row.expires_at == clock.now + 60 * SECOND
    clock.advance(30)
    state = run(store, HeartbeatSession(account=ACCOUNT, cause=CAUSE, by=BOB, session_id="s", lease_id=None))
    assert [row.expires_at for row in state.reservations] == [clock.now + 60 * SECOND]
    resumed = run(store, replace(opened, secret="secret"))
    assert [row.token for row in resumed.reservations] == [resumed.session.token + 1]
    with pytest.raises(LeaseLost):
        run(store, renew("a"))
    run(
        store,
        CloseSession(account=ACCOUNT, cause=CAUSE, by=replace(BOB, scopes="admin"), session_id="s", lease_id=None),
    )
    assert type(run(store, reserve("b", "x"))) is Reserved
    with pytest.raises(SessionMissing):
        run(store, reserve("c", "y", by=BOB, session="s"))
    check_log(store)


def test_reads_list_open_reservations_by_space(store, clock):
    transact(store, reserve("a", "x"), reserve("b", "y", space="other"), reserve("c", "src/**"), reserve("d", "q"))
    run(store, release_paths("d"))
    with store.read() as reader:
        assert [row.id for row in reader.reservations(ACCOUNT, None, ("", ""), 10)] == ["a", "c", "b"]
        assert [row.id for row in reader.reservations(ACCOUNT, None, (SPACE, "a"), 1)] == ["c"]
        assert [row.id for row in reader.reservations(ACCOUNT, SPACE, (SPACE, "a"), 10)] == ["c"]
        assert [row.id for row in reader.reservations_covering(ACCOUNT, SPACE, ["", "src", "src/a"])] == ["c"]
        assert reader.held_at(clock.now) == [("reservations", ACCOUNT, row) for row in "abc"]


def test_the_number_of_reservations_is_loaded_with_the_paths(store):
    transact(store, reserve("a", "x"), reserve("b", "y"))
    run(store, reserve("w", "x", may_wait=True))
    view = load_view(store, paths=((ACCOUNT, SPACE, "q", False),))
    assert view.space_use(ACCOUNT, SPACE) == SpaceUse(held=2, waiting=1)
    assert view.open_reservations(ACCOUNT, SPACE) == []


def test_a_request_costs_no_more_beside_one_that_loads_the_whole_space(memory):
    for number in range(60):
        run(memory, reserve(f"r{number}", *(f"z/{number}/*/{place}" for place in range(20))))
    many = reserve("many", *(f"x/*/{place}" for place in range(20)))
    assert [type(outcome) for outcome in transact(memory, reserve("wide", "**/none"), many)] == [Reserved, Reserved]
