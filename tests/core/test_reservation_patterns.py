"""Patterns of reserved paths: which texts are patterns, which paths they match, and which of them overlap."""

from __future__ import annotations

import fnmatch
import unicodedata
from fnmatch import fnmatchcase
from functools import cache
from itertools import product
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.core.reservation import conflicts, patterns, segments, sequences
from holdfast.core.reservation.patterns import parse
from holdfast.core.reservation.segments import segments_overlap
from holdfast.core.reservation.simple_patterns import SimplePatterns
from tests.proof_size import FULL

EXAMPLES = 20_000 if FULL else 20


@pytest.mark.parametrize(
    "text",
    [
        "README.md",
        "src/",
        "src/**",
        "**",
        "**/",
        "**/*.py",
        "src/**/test_?.py",
        "a/*/b",
        "...",
        ".github/",
        "..a/b..",
        "my file",
        "größe/日本",
        "[id].tsx",
        "?*?*?*?*",
        "**/" * 8,
        "a" * 512,
        "a" * 511 + "/",
    ],
)
def test_patterns_are_accepted(text):
    assert patterns.problem(text) is None
    assert parse(text).text == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "1 to 512 characters"),
        ("a" * 513, "at most 512 characters, this one has 513"),
        ("a" * 512 + "/", "at most 512 characters, this one has 513"),
        ("/", "1 to 512 characters"),
        ("/etc", "relative to the root"),
        ("a//b", "empty"),
        ("a//", "empty"),
        ("./a", "'.'"),
        ("a/../b", "'..'"),
        ("a/..", "'..'"),
        ("../", "'..'"),
        ("a\nb", "printable"),
        ("a\u202eb", "printable"),
        ("a\ud800", "printable"),
        (unicodedata.normalize("NFD", "größe"), "normal form C"),
        ("a**", "alone between slashes"),
        ("a/**b/c", "alone between slashes"),
        ("***", "alone between slashes"),
        ("?*?*?*?*?", "at most 8 wildcards, this one has 9"),
        ("**/" * 9, "at most 8 wildcards, this one has 9"),
    ],
)
def test_what_is_no_pattern_is_refused_with_the_reason(text, reason):
    assert reason in patterns.problem(text)


@pytest.mark.parametrize("path", ["a", "a/b", "a*b/**/what?", "*" * 20, "a" * 512])
def test_a_path_may_contain_any_printable_character(path):
    assert patterns.path_problem(path) is None


@pytest.mark.parametrize("path", ["", "a/", "/a", "a//b", ".", "a/..", "a\tb", "e\u0301", "a" * 513])
def test_what_is_no_path_is_refused(path):
    assert patterns.path_problem(path) is not None


@pytest.mark.parametrize(
    ("text", "prefix", "is_literal", "is_broad"),
    [
        ("src/auth/login.py", "src/auth/login.py", True, False),
        ("src/auth/", "src/auth", False, False),
        ("src/auth/**", "src/auth", False, False),
        ("src/a*/login.py", "src", False, False),
        ("src/**/login.py", "src", False, False),
        ("s?c/login.py", "", False, True),
        ("*.md", "", False, True),
        ("**", "", False, True),
    ],
)
def test_the_prefix_is_what_precedes_the_first_segment_with_a_wildcard(text, prefix, is_literal, is_broad):
    pattern = parse(text)
    assert (pattern.prefix, pattern.is_literal, pattern.is_broad) == (prefix, is_literal, is_broad)


@pytest.mark.parametrize(("prefix", "expected"), [("", [""]), ("a", ["", "a"]), ("a/b/c", ["", "a", "a/b", "a/b/c"])])
def test_ancestors_are_the_root_and_every_leading_part(prefix, expected):
    assert patterns.ancestors(prefix) == expected


@pytest.mark.parametrize(
    ("text", "matched", "not_matched"),
    [
        ("README.md", ["README.md"], ["readme.md", "README.mdx", "docs/README.md", "README.md/a"]),
        ("src/", ["src/a", "src/a/b", "src/.a"], ["src", "srcs/a", "a/src/b"]),
        ("src/**", ["src", "src/a", "src/a/b"], ["srcs", "a/src"]),
        ("**", ["a", "a/b/c"], []),
        ("**/", ["a", "a/b/c"], []),
        ("*", ["a", ".git", "a b"], ["a/b"]),
        ("*/", ["a/b", "a/b/c"], ["a"]),
        ("*.py", ["a.py", ".py"], ["a.pyc", "a/b.py"]),
        ("**/*.py", ["a.py", "a/b.py", "a/b/c.py"], ["a.py/b"]),
        ("src/*/test.py", ["src/a/test.py"], ["src/test.py", "src/a/b/test.py"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b", "a/b/b"], ["a", "b", "a/b/c"]),
        ("**/a/**/b/**", ["a/b", "x/a/y/b/z", "a/a/b"], ["b/a", "a", "ab"]),
        ("test_?.py", ["test_1.py", "test_é.py", "test_😀.py"], ["test_.py", "test_12.py"]),
        ("a*b*c", ["abc", "aXbXc", "abcbc"], ["ab", "acb", "abcd"]),
        ("a*a", ["aa", "aba"], ["a"]),
        ("*ab*b", ["abb", "abab"], ["ab", "aab"]),
        ("*ab?b*", ["abab", "xabbby", "aabxb"], ["ab", "abb"]),
        ("file[1].txt", ["file[1].txt"], ["file1.txt"]),
        ("a?b", ["a*b", "a?b"], ["a**b"]),
        ("axb", ["axb"], ["a*b", "a?b"]),
        ("a/*x*", ["a/*x?"], ["a/*", "a/?"]),
    ],
)
def test_which_paths_a_pattern_matches(text, matched, not_matched):
    assert [path for path in matched + not_matched if parse(text).matches(path)] == matched


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("src/a.py", "src/a.py"),
        ("src/", "src/a.py"),
        ("src/", "src/**/x"),
        ("src/**", "src"),
        ("**/*.py", "src/auth/"),
        ("*.md", "README*"),
        ("a*", "*b"),
        ("a*c", "ab*"),
        ("?b", "a?"),
        ("a/**/z", "a/b/**"),
        ("**/a/b/**", "a/a/b"),
        ("**/x/**", "**/y/**"),
        ("**/a", "**/?"),
        ("?", "*"),
        ("??", ".*"),
        ("??", ".?"),
        (".?", "*.*"),
        ("...", ".*."),
        (".*", "*."),
        ("**", "**"),
        ("*e", "e\u0302*"),
        ("e?", "?\u0301"),
    ],
)
def test_patterns_overlap_if_some_path_matches_both(one, other):
    assert patterns.overlap(parse(one), parse(other))
    assert patterns.overlap(parse(other), parse(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("src/a.py", "src/A.py"),
        ("src/", "src"),
        ("src/", "srcs/a"),
        ("src/*", "src/a/b"),
        ("*.py", "*.md"),
        ("a*", "b*"),
        ("*ab", "a"),
        ("a*a", "a"),
        ("a*b*c", "ac?"),
        ("**/a", "**/b"),
        ("a/**", "b/**"),
        ("**/a/b/**", "a/c/b"),
        ("**/a/**/a/**", "*"),
        ("a/**/b", "a/*/c"),
        ("a/?/**", "a"),
    ],
)
def test_patterns_without_a_common_path_do_not_overlap(one, other):
    assert not patterns.overlap(parse(one), parse(other))
    assert not patterns.overlap(parse(other), parse(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("?", ".*"),
        ("?", "*."),
        ("?", "*.*"),
        ("??", "..*"),
        ("??", ".*."),
        (".?", "?."),
        (".?", "*."),
        (".?", "*.*.*"),
        ("?.", ".*"),
        ("?.", "*.*.*"),
    ],
)
def test_patterns_do_not_overlap_in_dots_which_are_no_names(one, other):
    for around in ("{}", "a/{}", "{}/a", "**/{}", "a/{}/**"):
        assert not patterns.overlap(parse(around.format(one)), parse(around.format(other)))
        assert not patterns.overlap(parse(around.format(other)), parse(around.format(one)))


def texts(names):
    """Patterns of a few of these segments, with `**` between them, and sometimes a trailing slash."""
    item = st.tuples(st.booleans(), st.sampled_from(names)).map(lambda pair: ["**"] * pair[0] + [pair[1]])
    return st.builds(
        lambda items, ending: "/".join([segment for item in items for segment in item] + ending),
        st.lists(item, min_size=1, max_size=3),
        st.sampled_from([[], ["**"], [""]]),
    ).filter(lambda text: patterns.problem(text) is None)


def simple_texts():
    """Paths, and everything below one."""
    path = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=3).map("/".join)
    return st.builds(str.__add__, path, st.sampled_from(["", "/", "/**", "/**/*"])) | st.sampled_from(["**", "**/*"])


def naive(pattern: list[str], path: list[str]) -> bool:
    if pattern[-1:] == [""]:
        return any(naive(pattern[:-1], path[:end]) for end in range(len(path)))
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(naive(pattern[1:], path[start:]) for start in range(len(path) + 1))
    return path != [] and fnmatchcase(path[0], pattern[0]) and naive(pattern[1:], path[1:])


NAMES = st.text("ab.", min_size=1, max_size=5).filter(lambda name: name not in {".", ".."})
SEGMENTS = st.text("ab.*?", min_size=1, max_size=6).filter(lambda text: patterns.problem(text) is None)


@settings(max_examples=EXAMPLES)
@given(
    texts(["a", "b", "*", "?", "a*", "*b", "*a*", "a?"]),
    st.lists(st.sampled_from(["a", "b", "ab", "aab"]), min_size=1, max_size=6),
)
@example("**/a/b/**", ["a", "a", "b"])
def test_a_pattern_matches_what_the_naive_matcher_matches(text, path):
    assert parse(text).matches("/".join(path)) == naive(text.split("/"), path)


@settings(max_examples=EXAMPLES)
@given(SEGMENTS, NAMES)
def test_a_segment_matches_what_the_naive_matcher_matches(segment, name):
    assert parse(segment).matches(name) == fnmatchcase(name, segment)


# A common name need not be longer than the characters of both segments, stars left out, and one more: a character that
# stars of both sides take can be left out, unless the name would be empty, `.` or `..` without it. The letters a and b
# and the dot are enough, because where neither side requires a character, an a will do.
def shorter_names(longest: int) -> list[str]:
    every = ("".join(name) for size in range(1, longest + 1) for name in product("ab.", repeat=size))
    return [name for name in every if name not in {".", ".."}]


UP_TO_SEVEN = shorter_names(7)
SHORT_SEGMENTS = SEGMENTS.filter(lambda text: len(text.replace("*", "")) <= 3)


@cache
def names_of(segment: str) -> frozenset[str]:
    return frozenset(fnmatch.filter(UP_TO_SEVEN, segment))


@settings(max_examples=EXAMPLES)
@given(SHORT_SEGMENTS, SHORT_SEGMENTS)
@example("?", ".*")
@example(".?", "?.")
@example("??", "..*")
def test_segments_overlap_exactly_if_some_name_matches_both(one, other):
    expected = not names_of(one).isdisjoint(names_of(other))
    assert segments_overlap(one, other) == expected
    assert segments_overlap(other, one) == expected


# Two of these segments overlap exactly if one of the three names matches both (the first assertion below). A segment
# that `**` of both sides take can be left out of a common path, unless it is the only one. A pattern has up to three
# other segments, and one more for a trailing slash, so paths of eight segments are enough.
FEW_SEGMENTS = ["a", "b", "*", "?", "a*", "*b"]
FEW_NAMES = ["a", "b", "ab"]


LONGEST = 8


def below(paths: set[tuple[str, ...]], names: list[str]) -> set[tuple[str, ...]]:
    return {(*path, name) for path in paths for name in names if len(path) < LONGEST}


def anything_below(paths: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for _ in range(LONGEST):
        paths = below(paths, FEW_NAMES)
        found |= paths
    return found


@cache
def paths_of(text: str) -> frozenset[tuple[str, ...]]:
    """Every path of a pattern, written out."""
    found: set[tuple[str, ...]] = {()}
    for segment in text.removesuffix("/").split("/"):
        if segment == "**":
            found |= anything_below(found)
        else:
            found = below(found, [name for name in FEW_NAMES if fnmatchcase(name, segment)])
    return frozenset((anything_below(found) if text.endswith("/") else found) - {()})


def test_the_few_names_are_enough_for_the_few_segments():
    for one, other in product(FEW_SEGMENTS, repeat=2):
        expected = not names_of(one).isdisjoint(names_of(other))
        assert any(fnmatchcase(name, one) and fnmatchcase(name, other) for name in FEW_NAMES) == expected


@settings(max_examples=EXAMPLES)
@given(texts(FEW_SEGMENTS), texts(FEW_SEGMENTS))
@example("**/a/b/**", "a/a/b")
@example("a/", "a")
@example("a/**", "a")
def test_patterns_overlap_exactly_if_some_path_matches_both(one, other):
    expected = not paths_of(one).isdisjoint(paths_of(other))
    assert patterns.overlap(parse(one), parse(other)) == expected
    assert patterns.overlap(parse(other), parse(one)) == expected
    assert expected <= patterns.may_overlap(parse(one), parse(other))
    assert patterns.may_overlap(parse(one), parse(other)) == patterns.may_overlap(parse(other), parse(one))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/bc", False),
        ("a/**", "a/b/c", True),
        ("a/b/*", "a/**", True),
        ("a", "a/b", False),
        ("a", "a/b/**", False),
        ("a*", "b/c", True),
        ("a/", "ab/", False),
        ("a/", "a", True),
    ],
)
def test_patterns_may_overlap_if_one_prefix_is_above_the_other_and_no_literal_path_is(one, other, expected):
    assert patterns.may_overlap(parse(one), parse(other)) == expected
    assert patterns.may_overlap(parse(other), parse(one)) == expected


@settings(max_examples=EXAMPLES)
@given(
    st.lists(texts([*FEW_SEGMENTS, "a*b*a", ".?", "?."]), max_size=3),
    st.lists(st.lists(st.one_of(texts(["a", "b"]), texts(FEW_SEGMENTS)), min_size=1, max_size=2), max_size=4),
)
@example(["a/b"], [["a"], ["a/"], ["a/b/"], ["a/b/**"], ["**"], ["a/c/"], ["a/b/c/**"]])
@example(["**/a/**/a"], [["a/a"], ["a/b/a"], ["a"]])
@example(["**/a/*b*b*/**"], [["a/abb"], ["a/ab"], ["a/abab/a"]])
@example(["a*b"], [["abab"], ["aba"]])
@example(["a*/**/*b"], [["**/ab"], ["ab*/**/ab"], ["a*/**/b"], ["b*/**"], ["**/*a"]])
@example(["**/a/b/**/b"], [["a/a/b/b"], ["a/b"], ["a/"], ["b/**"]])
@example(["*b/**/a"], [["ab/a"], ["a/a"], ["ab/"], ["a/"], ["a/**"]])
def test_conflicts_with_many_are_those_of_which_some_pattern_overlaps(mine, many):
    own = [parse(text) for text in mine]
    keyed = [(key, [parse(text) for text in theirs]) for key, theirs in enumerate(many)]
    expected = [key for key, theirs in keyed if patterns.any_overlap(own, theirs)]
    assert conflicts.conflicts_with(own, keyed) == expected
    with mock.patch.object(conflicts, "FEW_PAIRS", -1):  # as if there were many
        assert conflicts.conflicts_with(own, keyed) == expected


@settings(max_examples=EXAMPLES)
@given(st.lists(simple_texts(), max_size=4), simple_texts())
@example(["a/"], "a")
@example(["a/**"], "a")
@example(["a"], "a/")
@example(["a", "a/b"], "a/")
@example(["**"], "a")
@example(["a/b/"], "**/*")
@example(["ab/"], "a/")
def test_simple_patterns_are_compared_with_all_at_once(mine, other):
    own = [parse(text) for text in mine]
    assert SimplePatterns(own).overlap(parse(other)) == patterns.any_overlap(own, [parse(other)])


def test_a_long_segment_overlaps_with_no_name_of_two_characters_and_is_not_compared_with_each():
    assert segments.segments_overlap("??", "*ab*")
    assert not segments.segments_overlap("??", "*abc*")
    assert segments._names("??", "".join(map(chr, range(0x4E00, 0x4F00))) + "*") == []


def test_overlapping_pairs_are_all_pairs_that_overlap():
    mine = [parse(text) for text in ("src/", "README.md", "**/*.py")]
    theirs = [parse(text) for text in ("src/a.py", "docs/", "*.md")]
    assert patterns.overlapping_pairs(mine, theirs) == [
        ("src/", "src/a.py"),
        ("README.md", "*.md"),
        ("**/*.py", "src/a.py"),
        ("**/*.py", "docs/"),
    ]
    assert patterns.any_overlap(mine, theirs)
    assert not patterns.any_overlap(mine[1:2], theirs[:2])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["", *["a" * 50 + "b"] * 5, ""], ["a" * 512]),
        (["", "a?" * 4 + "a" * 240 + "b", ""], ["?a" * 4 + "a" * 500]),
        (["", *["a?a"] * 7, ""], ["a" * 250 + "?" * 8 + "b" * 250]),
        ([[], ["a*"] * 8, []], [[f"a{number}" for number in range(256)]]),
        ([[], [f"a{number}" for number in range(250)], []], [[f"a{number}" for number in range(249)] + ["?"] * 8]),
    ],
)
def test_the_number_of_comparisons_grows_with_the_length_and_not_with_its_square(one, other):
    compared = []

    def overlaps(left: str, right: str) -> bool:
        compared.append((left, right))
        return segments_overlap(left, right)

    sequences.sequences_overlap(one, other, overlaps)
    assert len(compared) <= 8 * 2 * 512
