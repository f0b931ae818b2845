"""Grants to callers behind a front. When a front reports that the caller disconnected first, its grant is ended."""

from __future__ import annotations

import time
from collections.abc import Callable

KEPT_SECONDS = 10.0
"""How long a front may take to notice that a caller has left: it does with the answer, unless it is suspended."""

GiveBack = Callable[[], None]


class ForwardedGrants:
    """What was granted to waiting requests lately, by the number that the front gave the request."""

    def __init__(self) -> None:
        self._granted: dict[str, tuple[float, GiveBack]] = {}
        self._left: dict[str, float] = {}
        """Requests whose callers have left, each with the time at which the front said so."""

    def add(self, number: str, give_back: GiveBack) -> None:
        """A request is answered with a grant; it is given back now if its caller has left already."""
        self._forget_old()
        if self._left.pop(number, None) is not None:
            give_back()
        else:
            self._granted[number] = (time.monotonic(), give_back)

    def caller_left(self, number: str) -> None:
        """The caller of a request left before its answer."""
        self._forget_old()
        granted = self._granted.pop(number, None)
        if granted is not None:
            granted[1]()
        else:
            self._left[number] = time.monotonic()

    def _forget_old(self) -> None:
        """Both are in the order of time."""
        oldest = time.monotonic() - KEPT_SECONDS
        while self._granted and next(iter(self._granted.values()))[0] < oldest:
            del self._granted[next(iter(self._granted))]
        while self._left and next(iter(self._left.values())) < oldest:
            del self._left[next(iter(self._left))]
