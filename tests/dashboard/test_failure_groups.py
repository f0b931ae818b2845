"""Failure groups of dead letters, and the dashboard's task filter, without a server."""

import msgspec
import pytest

from holdfast.core import task as tasks
from holdfast.core.task import Attempt, Task
from holdfast.transport.dashboard import task_filter
from holdfast.transport.dashboard.failure_groups import FailureGroups, failure_text, group_reason, normalize_reason
from holdfast.transport.dashboard.task_filter import DashboardFilter, is_unchanged_since


def dead(reason=None, *, code=None, cause=tasks.EXHAUSTED, type="t", at=10, id="tsk_1"):
    ended = Attempt("w", tasks.FAILED, at, 1, "proof", reason=reason, code=code)
    return Task(
        "default", id, version=3, changed_at=at, type=type, state=tasks.DEAD, dead_cause=cause, failure_reason=reason,
        created_at=1, ended=msgspec.json.encode(ended).decode(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("timed out after 30 s", "timed out after 7 s"),
        ("no row 3fa85f64-5717-4562-b3fc-2c963f66afa6", "no row 00000000-0000-4000-8000-000000000000"),
        ("bad commit 9f3c2e1ab0", "bad commit 0123456789"),
        ("GET https://a.example/x?y=1 answered 503", "GET http://b.example/z answered 502"),
        ("no key 'left'", 'no key "right"'),
        ("too   many\nblanks", "too many blanks"),
    ],
)
def test_reasons_that_differ_only_in_numbers_are_one_group(one, other):
    assert normalize_reason(one) == normalize_reason(other)


def test_different_reasons_are_different_groups():
    assert normalize_reason("disk full") != normalize_reason("disk failed")
    assert normalize_reason("") == "no reason given"
    assert len(normalize_reason("x" * 1000)) == 120


def test_the_error_code_names_a_group_and_expired_leases_are_their_own():
    assert group_reason(dead("row 7 is odd", code="odd_row")) == "odd_row"
    assert group_reason(dead(cause=tasks.LEASE_EXPIRED)) == "lease expired: its worker did not renew it"
    ended = dead("session expired", cause=tasks.LEASE_EXPIRED)
    assert group_reason(ended) == "lease expired: the session of its worker ended"
    assert group_reason(dead("row 7 is odd")) == "row <n> is odd"


def test_an_expired_lease_says_who_held_it_and_what_it_last_reported():
    ended = Attempt("cursor-ui", tasks.EXPIRED, 10, 3, "proof", note="row 7 of 9")
    task = msgspec.structs.replace(
        dead(cause=tasks.LEASE_EXPIRED), ended=msgspec.json.encode(ended).decode(), failure_reason="timed out"
    )
    assert failure_text(task) == (
        "held by cursor-ui, no renewal for 5 min; last note: row 7 of 9; failure before: timed out"
    )
    assert failure_text(dead("session expired", cause=tasks.LEASE_EXPIRED)).startswith("held by w, its session ended")
    assert failure_text(dead("boom")) == "boom"


def test_a_group_has_one_reason_counts_its_types_and_shows_its_newest_task():
    found = [dead("no 1", at=5, id="a"), dead("no 2", at=11, id="b"), dead("no 3", type="u"), dead("yes", at=1)]
    groups = FailureGroups()
    groups.add(found[:2])
    groups.add(found[2:])
    first, *rest = groups.largest()
    assert groups.count == 4
    assert (first.reason, first.count, first.types) == ("no <n>", 3, {"t": 2, "u": 1})
    assert (first.newest.id, first.newest.text) == ("b", "no 2")
    assert [(group.reason, group.count) for group in rest] == [("yes", 1)]


def test_a_filter_survives_a_round_trip_through_an_address():
    asked = DashboardFilter(
        state="dead_letter", type="t", tag="a&b", key="k=v", worker="w", open="yes", reason="<n> & more"
    )
    assert task_filter.parse(asked.parameters) == asked
    assert task_filter.parse({"state": "exploded", "other": "x"}) == DashboardFilter()
    assert task_filter.parse({"status": "claimed"}) == DashboardFilter(state="claimed")


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        (DashboardFilter(), True),
        (DashboardFilter(state="dead_letter", type="t", reason="no <n>", open="yes"), True),
        (DashboardFilter(state="pending"), False),
        (DashboardFilter(type="u"), False),
        (DashboardFilter(tag="x"), False),
        (DashboardFilter(key="x"), False),
        (DashboardFilter(worker="x"), False),
        (DashboardFilter(reason="no 1"), False),
        (DashboardFilter(ids="tsk_2 tsk_1"), True),
        (DashboardFilter(ids="tsk_11"), False),
    ],
)
def test_every_condition_of_a_filter_must_match(asked, fits):
    assert asked.matches(dead("no 1")) is fits


def test_a_resolved_dead_letter_is_not_open():
    assert not DashboardFilter(open="yes").matches(msgspec.structs.replace(dead(), resolved_at=5))


def test_tasks_changed_after_the_count_are_excluded_but_renewals_are_no_change():
    task = dead(at=10)
    assert (is_unchanged_since(task, 9), is_unchanged_since(task, 10), is_unchanged_since(task, 11)) == (
        False,
        True,
        True,
    )
    held = Task("default", "tsk_1", version=9, changed_at=50, state=tasks.CLAIMED, created_at=1, claimed_at=10)
    assert (is_unchanged_since(held, 9), is_unchanged_since(held, 10)) == (False, True)
