"""Segments of patterns: what lies between two slashes, with `*` and `?`."""

from __future__ import annotations

from functools import lru_cache

from holdfast.core.reservation.sequences import is_wild, sequences_meet

DOTS = (".", "..")
"""No names: they stand for a folder itself and the one above."""
_COULD_BE_DOTS = {"?", "??", ".?", "?."}
"""Every segment of a fixed length that matches `.` or `..` and also something else."""


def segments_meet(one: str, other: str) -> bool:
    """Whether some name matches both segments."""
    if one == other:
        return True
    return (is_wild(one) or is_wild(other)) and _wild_segments_meet(one, other)


@lru_cache(maxsize=32768)
def _wild_segments_meet(one: str, other: str) -> bool:
    if one in _COULD_BE_DOTS:
        return any(_texts_meet(name, other) for name in _names(one, other))
    if other in _COULD_BE_DOTS:
        return any(_texts_meet(one, name) for name in _names(other, one))
    return _texts_meet(one, other)


def _names(fixed: str, other: str) -> list[str]:
    """This segment with a character that is no dot in place of a `?`: each that may matter to the other segment."""
    characters = {"-", *other} - {"*", "?", "."}
    return [
        fixed[:place] + character + fixed[place + 1 :]
        for place in range(len(fixed))
        if fixed[place] == "?"
        for character in characters
    ]


def _texts_meet(one: str, other: str) -> bool:
    """Whether some text matches both; it may be `.` or `..`, and it may be empty only if one of them is."""
    return sequences_meet(one.split("*"), other.split("*"), _characters_meet)


def _characters_meet(one: str, other: str) -> bool:
    return one in {other, "?"} or other == "?"
