"""Overlap test for two pattern segments: whether some name matches both."""

from __future__ import annotations

from functools import lru_cache

from holdfast.core.reservation.sequences import is_wild, sequences_overlap

DOTS = (".", "..")
"""No names: they stand for a folder itself and the one above."""
_COULD_BE_DOTS = {"?", "??", ".?", "?."}
"""Every segment of a fixed length that matches `.` or `..` and also something else."""


def segments_overlap(one: str, other: str) -> bool:
    """Whether some name matches both segments."""
    if one == other:
        return True
    return (is_wild(one) or is_wild(other)) and _wild_segments_overlap(one, other)


@lru_cache(maxsize=32768)
def _wild_segments_overlap(one: str, other: str) -> bool:
    if one in _COULD_BE_DOTS:
        return any(_texts_overlap(name, other) for name in _names(one, other))
    if other in _COULD_BE_DOTS:
        return any(_texts_overlap(one, name) for name in _names(other, one))
    return _texts_overlap(one, other)


def _names(fixed: str, other: str) -> list[str]:
    """This segment with a character that is no dot in place of a `?`: each that may matter to the other segment.

    None if the other segment matches only longer names.
    """
    if len(other) - other.count("*") > len(fixed):
        return []
    characters = {"-", *other} - {"*", "?", "."}
    return [
        fixed[:place] + character + fixed[place + 1 :]
        for place in range(len(fixed))
        if fixed[place] == "?"
        for character in characters
    ]


def _texts_overlap(one: str, other: str) -> bool:
    """Whether some text matches both; it may be `.` or `..`."""
    one_pieces, other_pieces = one.split("*"), other.split("*")
    if "?" in one or "?" in other:
        return sequences_overlap(one_pieces, other_pieces, _characters_overlap)
    # The same rules with the methods of str, which are several times as fast.
    if len(other_pieces) == 1:
        return _fits(one_pieces, other)
    if len(one_pieces) == 1:
        return _fits(other_pieces, one)
    first, last, other_first, other_last = one_pieces[0], one_pieces[-1], other_pieces[0], other_pieces[-1]
    return (first.startswith(other_first) or other_first.startswith(first)) and (
        last.endswith(other_last) or other_last.endswith(last)
    )


def _fits(pieces: list[str], name: str) -> bool:
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return first == name
    start, end = len(first), len(name) - len(last)
    if start > end or not name.startswith(first) or not name.endswith(last):
        return False
    for piece in pieces[1:-1]:
        start = name.find(piece, start, end) + len(piece)
        if start < len(piece):
            return False
    return True


def _characters_overlap(one: str, other: str) -> bool:
    return one in {other, "?"} or other == "?"
