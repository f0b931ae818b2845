"""Patterns of paths: which paths a pattern matches, and whether some path matches two of them.

A path is relative to the root of a repository. A pattern is a path in which `*` stands for any characters of one
segment, none included, `?` for one character, and `**`, alone between slashes, for any number of segments, none
included. A trailing `/` means everything below.

A wildcard stands for any code points. So two patterns (`e?`, and `?` with a combining accent) can count as
overlapping although every text that matches both is outside of Unicode's normal form C, which no path may be.
Patterns that do overlap are always found. The limit of length applies to patterns, not to the paths they match.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

import msgspec

from holdfast.core.limits import MAX_PATH_LENGTH
from holdfast.core.reservation.segments import DOTS, segments_overlap
from holdfast.core.reservation.sequences import is_wild, sequences_overlap

MAX_WILDCARDS = 8
"""Wildcards in one pattern; `**` is one."""

ANY_SEGMENTS = "**"
_ALL_BELOW = ([ANY_SEGMENTS], [ANY_SEGMENTS, "*"])
_OWN_CHARACTERS = str.maketrans({"*": "\0", "?": "\1"})
"""A `*` in a path is an ordinary character that no pattern names; so is every unprintable one."""


class Pattern(msgspec.Struct, frozen=True):
    """A pattern without problems."""

    text: str
    prefix: str
    """The segments before the first with a wildcard: the path of every match is this one or below it."""
    is_literal: bool
    """Whether it has no wildcard, so that it matches only itself."""
    is_simple: bool
    """Whether it matches one path, or everything below one."""
    pieces: tuple[tuple[str, ...], ...]
    """The segments before, between and after each `**`."""
    beginning: str
    """The characters before the first wildcard, with a slash before them and, for a literal pattern, after them."""
    ending: str
    """The characters after the last wildcard, with a slash after them and, for a literal pattern, before them."""
    probe: str
    """The prefix, each segment with a slash, and `\\0` if it matches what is below the prefix but not the prefix."""

    @property
    def is_broad(self) -> bool:
        """Whether its first segment has a wildcard, so that it may match anywhere in the repository."""
        return not self.prefix

    def matches(self, path: str) -> bool:
        """Whether it matches a path without problems."""
        if self.is_literal:
            return path == self.text
        return sequences_overlap(self.pieces, (path.translate(_OWN_CHARACTERS).split("/"),), segments_overlap)


def problem(text: str) -> str | None:
    """What is wrong with a pattern, or None."""
    if len(text) > MAX_PATH_LENGTH:
        return f"a pattern has at most {MAX_PATH_LENGTH} characters, this one has {len(text)}"
    found = path_problem(text.removesuffix("/"))
    if found is not None:
        return found
    if any(ANY_SEGMENTS in segment and segment != ANY_SEGMENTS for segment in text.split("/")):
        return "'**' must be alone between slashes"
    wildcards = text.count("?") + text.count("*") - text.count(ANY_SEGMENTS)
    if wildcards > MAX_WILDCARDS:
        return f"a pattern has at most {MAX_WILDCARDS} wildcards, this one has {wildcards}"
    return None


def path_problem(text: str) -> str | None:
    """What is wrong with a path, or None. In a path, `*` and `?` are ordinary characters."""
    if not 1 <= len(text) <= MAX_PATH_LENGTH:
        return f"a path has 1 to {MAX_PATH_LENGTH} characters, this one has {len(text)}"
    if not text.isprintable():
        return "a path has only printable characters"
    if not unicodedata.is_normalized("NFC", text):
        return "a path must be in Unicode's normal form C"
    if not {"", *DOTS}.isdisjoint(text.split("/")):
        return "a path is relative to the root, and no part between slashes may be empty, '.' or '..'"
    return None


@lru_cache(maxsize=16384)
def parse(text: str) -> Pattern:
    """A pattern from a text without problems."""
    segments = text.split("/")
    if not segments[-1]:
        segments[-1:] = [ANY_SEGMENTS, "*"]
    fixed = list(takewhile(lambda segment: not is_wild(segment), segments))
    pieces: list[list[str]] = [[]]
    for segment in segments:
        if segment == ANY_SEGMENTS:
            pieces.append([])
        else:
            pieces[-1].append(segment)
    rest = segments[len(fixed) :]
    between_wildcards = f"/{'/'.join(segments)}/".replace("?", "*").split("*")
    return Pattern(
        text=text,
        prefix="/".join(fixed),
        is_literal=not rest,
        is_simple=rest in ([], *_ALL_BELOW),
        pieces=tuple(tuple(piece) for piece in pieces),
        beginning=between_wildcards[0],
        ending=between_wildcards[-1],
        probe="".join(f"{segment}/" for segment in fixed) + "\0" * (rest == [ANY_SEGMENTS, "*"]),
    )


def overlap(one: Pattern, other: Pattern) -> bool:
    """Whether some path matches both."""
    if one.is_literal and other.is_literal:
        return one.text == other.text
    return sequences_overlap(one.pieces, other.pieces, segments_overlap)


def may_overlap(one: Pattern, other: Pattern) -> bool:
    """Whether one prefix is, or is above, the other; nothing that a literal pattern matches is below it."""
    if len(one.prefix) > len(other.prefix):
        one, other = other, one
    if one.prefix == other.prefix:
        return True
    return not one.is_literal and (one.is_broad or other.prefix.startswith(f"{one.prefix}/"))


def ancestors(prefix: str) -> list[str]:
    """The root, which is "", and every leading part of a prefix, itself included."""
    segments = prefix.split("/") if prefix else []
    return ["/".join(segments[:count]) for count in range(len(segments) + 1)]


def overlapping_pairs(mine: Sequence[Pattern], theirs: Sequence[Pattern]) -> list[tuple[str, str]]:
    """Every pair of texts, mine and theirs, that overlaps."""
    return [(one.text, other.text) for one in mine for other in theirs if overlap(one, other)]


def any_overlap(mine: Sequence[Pattern], theirs: Sequence[Pattern]) -> bool:
    """Whether some pattern of mine overlaps some pattern of theirs."""
    return any(overlap(one, other) for one in mine for other in theirs)
