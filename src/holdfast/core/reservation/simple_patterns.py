"""Fast overlap test for simple patterns: one path, or everything below one.

A path is written with a slash after every segment, so that one is below another exactly if it begins with it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from holdfast.core.reservation.patterns import Pattern

_BELOW = "\0"
"""Ends the probe of a pattern that does not match the folder itself."""


class SimplePatterns:
    """Some simple patterns. Others are compared with all of them at once, by a few operations on strings."""

    def __init__(self, mine: Sequence[Pattern]) -> None:
        self._files = sorted(pattern.probe for pattern in mine if pattern.is_literal)
        self._is_file = frozenset(self._files)
        folders = [pattern.probe for pattern in mine if not pattern.is_literal]
        self._folders = sorted(folder.removesuffix(_BELOW) for folder in folders)
        self._above = tuple(self._folders)
        self._inclusive = tuple(folder for folder in folders if not folder.endswith(_BELOW))
        """The folders that are themselves matched."""

    def overlap(self, other: Pattern) -> bool:
        """Whether one of them overlaps another simple pattern."""
        probe = other.probe
        if other.is_literal:
            return probe in self._is_file or other.text.startswith(self._above) or probe.startswith(self._inclusive)
        folder = probe.removesuffix(_BELOW)
        if folder.startswith(self._above):
            return True
        place = bisect_left(self._folders, folder)
        if place < len(self._folders) and self._folders[place].startswith(folder):
            return True
        find = bisect_right if probe.endswith(_BELOW) else bisect_left
        place = find(self._files, folder)
        return place < len(self._files) and self._files[place].startswith(folder)
