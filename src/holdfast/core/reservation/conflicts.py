"""Conflicts of reservations: finds those whose patterns overlap with the patterns of a new one.

A space may hold thousands of patterns, too many to compare each with each of the new ones. Most are simple: one path,
or everything below one. A simple pattern is compared at once with all new ones that are simple, and by one regular
expression with all others. Those that are not simple are compared pair by pair if the characters before their first and
after their last wildcard allow it. A few patterns are all compared pair by pair, because a regular expression must be
compiled first.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from holdfast.core.reservation.patterns import Pattern, ancestors, any_overlap, overlap
from holdfast.core.reservation.simple_patterns import SimplePatterns

Key = TypeVar("Key", bound=Hashable)

_ANY_SEGMENTS = "(?:[^/]+/)*"


FEW_PAIRS = 300
"""Up to so many pairs are compared one by one."""
MAX_WORK = 10_000
"""The most that one request may cost, by `work_of`: about 30 ms on a slow core."""
_CHARACTERS = 1_024
"""A long pattern costs as much more as it has characters to compare: so many pairs of them count as one comparison."""


def work_of(mine: Sequence[Pattern], many: Iterable[Sequence[Pattern]]) -> int:
    """How much work it is to compare patterns: pairs in which one is not simple, longer ones counted as several."""
    theirs = [pattern for patterns in many for pattern in patterns]
    complex_mine = [pattern for pattern in mine if not pattern.is_simple]
    complex_theirs = [pattern for pattern in theirs if not pattern.is_simple]
    return _pairs(complex_mine, theirs) + _pairs(mine, complex_theirs)


def _pairs(some: Sequence[Pattern], others: Sequence[Pattern]) -> int:
    characters = sum(len(one.text) for one in some) * sum(len(other.text) for other in others)
    return len(some) * len(others) + characters // _CHARACTERS


def near(mine: Sequence[Pattern], many: Mapping[Key, tuple[Pattern, ...]]) -> dict[Key, tuple[Pattern, ...]]:
    """Those that have a pattern whose prefix is above or below one of mine, as stores find them."""
    above = {prefix for pattern in mine for prefix in ancestors(pattern.prefix)}
    folders = {pattern.prefix for pattern in mine if not pattern.is_literal}

    def is_near(other: Pattern) -> bool:
        return other.prefix in above or not folders.isdisjoint(ancestors(other.prefix))

    return {key: theirs for key, theirs in many.items() if any(map(is_near, theirs))}


def conflicts_with(mine: Sequence[Pattern], many: Iterable[tuple[Key, Sequence[Pattern]]]) -> list[Key]:
    """The keys of those that have a pattern that overlaps one of mine, in their order."""
    found = list(many)
    if sum(len(theirs) for _, theirs in found) * len(mine) <= FEW_PAIRS:
        return [key for key, theirs in found if any_overlap(mine, theirs)]
    simple = SimplePatterns([one for one in mine if one.is_simple])
    others = tuple(one for one in mine if not one.is_simple)
    matches = _matching(others).match if others else _nothing
    reaches = _reaching(others).match if others else _nothing

    def overlaps(other: Pattern) -> bool:
        if other.is_literal:
            return simple.overlap(other) or matches(other.probe) is not None
        if other.is_simple:
            return simple.overlap(other) or reaches(other.probe) is not None
        return any(_ends_agree(one, other) and overlap(one, other) for one in mine)

    return [key for key, theirs in found if any(map(overlaps, theirs))]


def _nothing(_: str) -> None:
    """Match no text."""


def _ends_agree(one: Pattern, other: Pattern) -> bool:
    """Whether one's beginning begins with the other's, or the other way round, and the same for their endings."""
    return (one.beginning.startswith(other.beginning) or other.beginning.startswith(one.beginning)) and (
        one.ending.endswith(other.ending) or other.ending.endswith(one.ending)
    )


@lru_cache(maxsize=16)
def _matching(mine: tuple[Pattern, ...]) -> re.Pattern[str]:
    """Matches a path, with a slash at its end, if one of the patterns does."""
    return re.compile("|".join(f"{_path(pattern)}\\Z" for pattern in mine))


@lru_cache(maxsize=16)
def _reaching(mine: tuple[Pattern, ...]) -> re.Pattern[str]:
    """Matches the probe of a folder if one of the patterns matches something in it."""
    return re.compile("|".join(_folders(pattern) for pattern in mine))


def _path(pattern: Pattern) -> str:
    """An expression for the paths of a pattern.

    The groups that keep their first match put each piece as far to the left as it fits, which is never wrong.
    """
    first, *others = ("".join(f"{_name(segment)}/" for segment in piece) for piece in pattern.pieces)
    if not others:
        return first
    middle = "".join(f"(?>{_ANY_SEGMENTS}?{piece})" for piece in others[:-1] if piece)
    return f"{first}{middle}{_ANY_SEGMENTS}{others[-1]}"


def _folders(pattern: Pattern) -> str:
    """An expression for the probes of folders in which a pattern matches something.

    The probe of a folder ends before, in or after the segments that precede the first `**`.
    """
    first = "".join(f"(?:\0?\\Z|{_name(segment)}/)" for segment in pattern.pieces[0])
    return first if len(pattern.pieces) > 1 else f"{first}\\Z"


def _name(segment: str) -> str:
    """An expression for the names that match a segment; a slash must follow it."""
    first, *others = ("[^/]".join(map(re.escape, piece.split("?"))) for piece in segment.split("*"))
    if not others:
        return first
    middle = "".join(f"(?>[^/]*?{piece})" for piece in others[:-1])
    return f"{first}{middle}[^/]*{others[-1]}"
