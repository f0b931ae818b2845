"""Overlap test for two wildcard sequences: characters of a segment, or segments of a path.

A segment of a pattern is a sequence of characters in which `*` is a gap; a pattern is a sequence of segments in which
`**` is a gap. Both are given as pieces: what lies before, between and after the gaps. `overlaps` says whether something
fits two items.

If both have a gap, their first and their last pieces decide: the rest of each fits into a gap of the other. If only one
has, each of its pieces is put as far to the left as it fits, which leaves the most room for the next. Whether a piece
fits at a place does not depend on the other pieces, because each place has at most one item of either side. So both
rules are exact, and no search is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Piece = Sequence[str]
Overlaps = Callable[[str, str], bool]


def sequences_overlap(one: Sequence[Piece], other: Sequence[Piece], overlaps: Overlaps) -> bool:
    """Whether some sequence fits both, each given as its pieces."""
    if len(one) > 1 and len(other) > 1:
        return _agree(one[-1][::-1], other[-1][::-1], overlaps) and _agree(one[0], other[0], overlaps)
    return _fit(other, one[0], overlaps) if len(one) == 1 else _fit(one, other[0], overlaps)


def _agree(one: Piece, other: Piece, overlaps: Overlaps) -> bool:
    """Whether the items of both overlap, as far as the shorter one goes."""
    return all(map(overlaps, one, other))


def is_wild(item: str) -> bool:
    """Whether a segment or a character stands for more than itself."""
    return "*" in item or "?" in item


def _fit(pieces: Sequence[Piece], fixed: Piece, overlaps: Overlaps) -> bool:
    """Whether pieces with gaps between them fit into a sequence without gaps."""
    first, last = pieces[0], pieces[-1]
    start, end = len(first), len(fixed) - len(last)
    if len(pieces) == 1:
        return end == 0 and _agree(first, fixed, overlaps)
    if start > end or not _agree(last, fixed[end:], overlaps) or not _agree(first, fixed, overlaps):
        return False
    middle = [piece for piece in pieces[1:-1] if piece]
    if not middle:
        return True
    places = _Places(fixed, overlaps)
    for piece in middle:
        found = places.of(piece) >> start
        if not found:
            return False
        start += (found & -found).bit_length() - 1 + len(piece)
    return start <= end


class _Places:
    """The places at which a piece fits into a sequence without gaps, as the bits of a number.

    Items that are alike are compared once, so the cost grows with the sum of the two lengths, not with their product.
    """

    def __init__(self, fixed: Piece, overlaps: Overlaps) -> None:
        self._overlaps = overlaps
        self._everywhere = (2 << len(fixed)) - 1
        self._items: dict[str, int] = {}
        for place, item in enumerate(fixed):
            self._items[item] = self._items.get(item, 0) | 1 << place
        self._wild = [item for item in self._items if is_wild(item)]
        self._found: dict[str, int] = {}

    def of(self, piece: Piece) -> int:
        places = self._everywhere
        for offset, item in enumerate(piece):
            if item not in self._found:
                self._found[item] = self._find(item)
            places &= self._found[item] >> offset
            if not places:
                break
        return places

    def _find(self, item: str) -> int:
        """The places of all items that overlap this one."""
        places = self._items.get(item, 0)
        for other in self._items if is_wild(item) else self._wild:
            if self._overlaps(item, other):
                places |= self._items[other]
        return places
