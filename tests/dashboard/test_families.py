"""What dead letters died of, and which tasks a filter means: rules without a server."""

import msgspec
import pytest

from holdfast.core import task as tasks
from holdfast.core.task import Attempt, Task
from holdfast.transport.dashboard import task_filter
from holdfast.transport.dashboard.failure_groups import Groups, family, family_of
from holdfast.transport.dashboard.task_filter import Wanted, stood


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
def test_the_same_trouble_with_other_numbers_is_one_family(one, other):
    assert family(one) == family(other)


def test_other_words_are_another_family():
    assert family("disk full") != family("disk failed")
    assert family("") == "no reason given"
    assert len(family("x" * 1000)) == 120


def test_a_code_says_it_best_and_a_lease_that_ran_out_says_it_itself():
    assert family_of(dead("row 7 is odd", code="odd_row")) == "odd_row"
    assert family_of(dead(cause=tasks.LAPSED)) == "lease ran out"
    assert family_of(dead("row 7 is odd")) == "row <n> is odd"


def test_groups_are_of_one_type_and_family_and_show_their_newest():
    found = [dead("no 1", at=5, id="a"), dead("no 2", at=9, id="b"), dead("no 3", type="u"), dead("yes", at=1)]
    groups = Groups()
    groups.add(found[:2])
    groups.add(found[2:])
    first, *rest = groups.largest()
    assert groups.count == 4
    assert (first.type, first.reason, first.count, first.newest.id) == ("t", "no <n>", 2, "b")
    assert [(group.type, group.reason, group.count) for group in rest] == [("t", "yes", 1), ("u", "no <n>", 1)]


def test_a_filter_goes_into_an_address_and_comes_back():
    asked = Wanted(state="dead_letter", type="t", tag="a&b", key="k=v", worker="w", open="yes", reason="<n> & more")
    assert task_filter.read(asked.given) == asked
    assert task_filter.read({"state": "exploded", "other": "x"}) == Wanted()


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        (Wanted(), True),
        (Wanted(state="dead_letter", type="t", reason="no <n>", open="yes"), True),
        (Wanted(state="pending"), False),
        (Wanted(type="u"), False),
        (Wanted(tag="x"), False),
        (Wanted(key="x"), False),
        (Wanted(worker="x"), False),
        (Wanted(reason="no 1"), False),
    ],
)
def test_every_part_of_a_filter_must_fit(asked, fits):
    assert asked.fits(dead("no 1")) is fits


def test_a_dead_letter_that_was_dealt_with_is_not_open():
    assert not Wanted(open="yes").fits(msgspec.structs.replace(dead(), resolved_at=5))


def test_what_changed_after_the_count_is_not_meant_but_a_sign_of_life_is_no_change():
    task = dead(at=10)
    assert (stood(task, 9), stood(task, 10), stood(task, 11)) == (False, True, True)
    held = Task("default", "tsk_1", version=9, changed_at=50, state=tasks.CLAIMED, created_at=1, claimed_at=10)
    assert (stood(held, 9), stood(held, 10)) == (False, True)
