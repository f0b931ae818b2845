"""Which patterns of paths overlap, found by trying every path of a small repository."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from itertools import product

PATTERNS = ("src/a", "src/b", "src/*", "src/**", "docs/", "docs/a", "*/a", "**/b")
"""What workers reserve."""

_NAMES = ("src", "docs", "a", "b")
_PATHS = [names for depth in (1, 2, 3) for names in product(_NAMES, repeat=depth)]


def conflict(one: tuple[str, ...], mode: str, other: tuple[str, ...], other_mode: str) -> bool:
    """Whether some path matches a pattern of both, and one of them is exclusive."""
    return "exclusive" in {mode, other_mode} and any(_overlap(mine, theirs) for mine in one for theirs in other)


@cache
def _overlap(one: str, other: str) -> bool:
    return any(_matches(_segments(one), path) and _matches(_segments(other), path) for path in _PATHS)


def _segments(pattern: str) -> tuple[str, ...]:
    """Its segments; a trailing slash means everything below."""
    return tuple((f"{pattern}**/*" if pattern.endswith("/") else pattern).split("/"))


def _matches(segments: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if not segments:
        return not path
    if segments[0] == "**":
        return any(_matches(segments[1:], path[start:]) for start in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], segments[0]) and _matches(segments[1:], path[1:])
