"""Capabilities: a task goes only to a worker that has everything that it requires."""

from __future__ import annotations

import itertools

import pytest

from holdfast.core.errors import CapabilityMissing
from holdfast.core.task import Task
from holdfast.core.task.capabilities import (
    FEW_WORDS,
    WORD,
    check_capable,
    combine,
    join_words,
    may_take,
    next_allowed,
    sets_of_few,
)


@pytest.mark.parametrize(
    ("capabilities", "requires", "allowed"),
    [
        ("", None, True),
        ("", "gpu", False),
        ("gpu", None, True),
        ("gpu", "gpu", True),
        ("cpu", "gpu", False),
        ("gpu", "gpu,repo:shop", False),
        ("gpu,other,repo:shop", "gpu,repo:shop", True),
        ("gpu2", "gpu", False),
    ],
)
def test_a_worker_may_take_what_requires_nothing_that_it_lacks(capabilities, requires, allowed):
    assert may_take(capabilities, requires) is allowed


def test_equal_sets_of_words_are_equal_text():
    assert join_words(["gpu", "cpu", "gpu"]) == join_words(["cpu", "gpu"]) == "cpu,gpu"
    assert join_words(None) == join_words([]) == ""
    assert combine("gpu", None, "cpu,gpu") == "cpu,gpu"
    assert combine("", None) == ""


def test_a_refusal_names_what_is_missing():
    with pytest.raises(CapabilityMissing, match="requires gpu, repo:shop") as caught:
        check_capable(Task("a", "t1", requires="cpu,gpu,repo:shop"), "cpu")
    assert caught.value.facts == {"missing": ["gpu", "repo:shop"]}


@pytest.mark.parametrize("word", ["gpu", "repo:shop", "a/b.c_d-1", "x" * 64])
def test_a_word_is_short_and_plain(word):
    assert WORD.fullmatch(word)


@pytest.mark.parametrize("word", ["", "a,b", "a b", "x" * 65, "ü", 'a"b', "a\n"])
def test_a_word_has_nothing_that_separates_words(word):
    assert not WORD.fullmatch(word)


def test_no_set_that_a_worker_may_take_is_left_out_by_the_steps_to_the_next():
    words = ["a", "a.b", "a-b", "ab", "b", "c", "c:d", "z"]
    sets = sorted({join_words(pair) for pair in itertools.product(words, repeat=3)})
    for able in itertools.chain(itertools.combinations(words, 2), itertools.combinations(words, 5), [("none",)]):
        capabilities, found, start, steps = join_words(able), [], "", 0
        while start is not None and (rest := [each for each in sets if each >= start]):
            found += [rest[0]] if may_take(capabilities, rest[0]) else []
            start, steps = next_allowed(capabilities, rest[0]), steps + 1
        assert found == [each for each in sets if may_take(capabilities, each)]
        assert steps < len(sets)


def test_the_sets_of_few_capabilities_are_all_that_a_worker_may_take():
    words = [f"w{number}" for number in range(FEW_WORDS + 1)]
    sets = [join_words(each) for count in range(1, len(words) + 1) for each in itertools.combinations(words, count)]
    for count in range(1, FEW_WORDS + 1):
        few = join_words(words[:count])
        assert sorted(sets_of_few(few)) == sorted(each for each in sets if may_take(few, each))
    assert sets_of_few(join_words(words)) == sets_of_few("") == ()
