"""Capabilities: the words that a task requires, and that a worker must have to get it.

A set of words is stored as text, sorted and separated by commas, so that equal sets are equal text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations

from holdfast.core.errors import CapabilityMissing
from holdfast.core.task.row import Task

WORD = re.compile(r"[A-Za-z0-9._:/-]{1,64}")
FEW_WORDS = 4
"""With so many capabilities, looking up each set that they make is faster than looking for the sets that tasks have."""


def join_words(words: Iterable[str] | None) -> str:
    """A set of words as text; empty for none."""
    return ",".join(sorted(set(words or ())))


@lru_cache(maxsize=4096)
def split_words(text: str | None) -> frozenset[str]:
    """The words of a set."""
    return frozenset(text.split(",")) if text else frozenset()


def combine(*sets: str | None) -> str:
    """All words of several sets."""
    given = [each for each in sets if each]
    return given[0] if len(given) == 1 else join_words(word for each in given for word in each.split(","))


def may_take(capabilities: str, requires: str | None) -> bool:
    """Whether a worker with these capabilities has all that is required."""
    return not requires or split_words(requires) <= split_words(capabilities)


def next_allowed(capabilities: str, words: str) -> str | None:
    """Where the next set begins, bytewise, that a worker may take, after a set of words; None if there is none.

    It is after a set whose first word the worker has, else at the next word that it has. No word has a character before
    the comma, so nothing lies between a set and the same text with "!".
    """
    first = words.partition(",")[0]
    able = split_words(capabilities)
    return f"{words}!" if first in able else min((word for word in able if word > first), default=None)


@lru_cache(maxsize=4096)
def sets_of_few(capabilities: str) -> tuple[str, ...]:
    """Every set of words that a worker with few capabilities may take; empty if it has more than that."""
    words = sorted(split_words(capabilities))
    if len(words) > FEW_WORDS:
        return ()
    return tuple(",".join(each) for count in range(1, len(words) + 1) for each in combinations(words, count))


def check_capable(task: Task, capabilities: str) -> None:
    """Refuse a claim by id of a worker that lacks something that the task requires."""
    if not may_take(capabilities, task.requires):
        missing = sorted(split_words(task.requires) - split_words(capabilities))
        raise CapabilityMissing(f"this task requires {', '.join(missing)}", missing=missing)
