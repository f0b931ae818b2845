"""Faults inside a process: a store whose commits fail before, during or after they take effect, and a driven clock."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.core.errors import OutcomeUnknown, StoreUnavailable
from holdfast.core.row import SECOND
from tests.support import DrivenClock


class UnreliableStore:
    """Passes everything on to a store, and loses some of its commits as a broken connection does.

    A batch may fail before its transaction begins, inside COMMIT without effect, or inside COMMIT after it took effect.
    """

    def __init__(self, store: Any, rng: random.Random, rate: float = 0.02) -> None:
        self.inner = store
        self._rng = rng
        self._rate = rate
        self.faults: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @contextmanager
    def transaction(self, lane: int = 0) -> Iterator[Any]:
        """Begin a batch."""
        fault = self._rng.choice(["before", "lost", "kept"]) if self._rng.random() < self._rate else ""
        self.faults[fault] += 1
        if fault == "before":
            raise StoreUnavailable("the connection broke before the transaction")
        with self.inner.transaction(lane) as transaction:
            yield transaction
            if fault == "lost":
                raise OutcomeUnknown("the connection broke inside COMMIT, which had no effect")
        if fault == "kept":
            raise OutcomeUnknown("the connection broke inside COMMIT, which took effect")


def passing_time(clock: DrivenClock, rng: random.Random) -> Callable[[list[int]], None]:
    """A function that lets time pass, given deadlines: a little, or to a deadline, or to the microsecond before it."""

    def pass_time(deadlines: list[int]) -> None:
        draw = rng.random()
        if draw < 0.2:
            following = [at for at in deadlines if at > clock.now]
            clock.now = max(clock.now, min(following, default=clock.now) - rng.randint(0, 1))
        else:
            clock.now += rng.randrange(3 * SECOND if draw < 0.25 else SECOND // 3)

    return pass_time
