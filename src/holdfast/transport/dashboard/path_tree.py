"""Patterns of paths as the rows of a tree: folders, and in them what is reserved."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Generic, TypeVar

import msgspec

from holdfast.core.reservation.sequences import is_wild

T = TypeVar("T")

MAX_LEVEL = 8
"""Deeper rows are not indented further."""


class TreeRow(msgspec.Struct, Generic[T], frozen=True):
    """A folder, or a pattern and what is known of it."""

    level: int
    label: str
    """The part of the path below the row above; it ends with a slash if it is a folder."""
    item: T | None
    """None for a folder that only contains others."""


class _Node(msgspec.Struct, Generic[T]):
    items: list[T] = []
    children: dict[str, _Node[T]] = {}


def tree_rows(patterns: Iterable[tuple[str, T]]) -> list[TreeRow[T]]:
    """The rows of the tree of (pattern, item), folders before files. A folder with one thing in it shares its row."""
    root: _Node[T] = _Node()
    for text, item in patterns:
        node = root
        for segment in _segments(text):
            node = node.children.setdefault(segment, _Node())
        node.items.append(item)
    return list(_rows(root, 0))


def _segments(text: str) -> list[str]:
    """The folders of a pattern, each with its slash, then the rest from the first wildcard on, which is one segment."""
    parts = [part for part in text.split("/") if part]
    fixed = list(takewhile(lambda part: not is_wild(part), parts))
    segments = [f"{part}/" for part in fixed]
    rest = "/".join(parts[len(fixed) :])
    if rest:
        return [*segments, f"{rest}/" if text.endswith("/") else rest]
    return segments if text.endswith("/") else [*segments[:-1], fixed[-1]]


def _rows(node: _Node[T], level: int) -> Iterable[TreeRow[T]]:
    for first in sorted(node.children, key=lambda label: (not label.endswith("/"), label)):
        label, child = first, node.children[first]
        while not child.items and len(child.children) == 1:
            below, child = next(iter(child.children.items()))
            label += below
        if not child.items:
            yield TreeRow(min(level, MAX_LEVEL), label, None)
        for item in child.items:
            yield TreeRow(min(level, MAX_LEVEL), label, item)
        yield from _rows(child, level + 1)
