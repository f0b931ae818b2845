"""Search for an order of calls that explains every answer: Wing and Gong's algorithm with Lowe's memoisation.

It uses the calls alone, not the store's log. A call may be placed first if no other one returned before it was made.
Every way in which the model lets it take effect is tried, and a pair of (calls placed, state) is never tried twice. A
call with an unknown outcome may be placed anywhere after it was made, or never.

Most orders are found in a few hundred steps. After an unlucky early choice it takes more than a hundred thousand, so
the search begins again with other choices before it gets much time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.linearizability.history import FOREVER, Call
from tests.linearizability.model import blank_state, effects
from tests.linearizability.model.objects import Key

MAX_STEPS = 400_000
SHORT_SEARCHES = 60
SHORT_SEARCH_STEPS = 3_000


class TooHard(Exception):
    """The search gave up: the history is too long for it."""


def not_applied(call: Call) -> bool:
    """Whether the answer says that nothing was done."""
    return call.answer is not None and call.answer["is"] == "unavailable"


def is_read(call: Call) -> bool:
    """Whether the call can change nothing."""
    return call.verb.startswith("read_")


def has_order(calls: list[Call], max_steps: int = MAX_STEPS, short_searches: int = SHORT_SEARCHES) -> bool:
    """Whether the calls of one group can have happened one after the other."""
    placed = sorted(
        (call for call in calls if not not_applied(call) and not (is_read(call) and call.answer is None)),
        key=lambda call: call.called,
    )
    for number in range(short_searches):
        try:
            return _Search(placed, SHORT_SEARCH_STEPS, shuffle=random.Random(number) if number else None).run()
        except TooHard:
            continue
    return _Search(placed, max_steps, shuffle=None).run()


class _Search:
    """A search over one group. Bit n of `done` is set once call n was placed."""

    def __init__(self, calls: list[Call], max_steps: int, shuffle: random.Random | None) -> None:
        self._calls = calls
        self._shuffle = shuffle
        self._keys: list[Key] = list(blank_state(calls))
        self._answered = sum(1 << number for number, call in enumerate(calls) if call.answer is not None)
        self._steps_left = max_steps
        self._seen: set[tuple[int, int, tuple[object, ...]]] = set()

    def run(self) -> bool:
        """Depth first, with a stack of its own: a history is longer than Python's stack."""
        stack = [self._continuations(0, 0, blank_state(self._calls))]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                continue
            done, first, state = following
            if self._answered & ~done == 0:
                return True
            mark = (first, done >> first, tuple(state[key] for key in self._keys))
            if mark not in self._seen:
                self._seen.add(mark)
                stack.append(self._continuations(done, first, state))
        return not self._answered

    def _continuations(
        self, done: int, first: int, state: dict[Key, object]
    ) -> Iterator[tuple[int, int, dict[Key, object]]]:
        """Each call that may come next, with the state after it."""
        for number in self._candidates(done, first):
            self._steps_left -= 1
            if self._steps_left < 0:
                raise TooHard(f"no order of {len(self._calls)} calls was found or excluded")
            call = self._calls[number]
            after, start = done | 1 << number, first
            while after >> start & 1:
                start += 1
            for changes in effects(state, call):
                if changes or call.answer is not None:  # an unknown outcome without effect need not be placed
                    yield after, start, {**state, **changes} if changes else state

    def _candidates(self, done: int, first: int) -> list[int]:
        """Calls that may come next: made before every other one that is left returned. Answered ones first."""
        found: list[int] = []
        unknown: list[int] = []
        soonest_return = FOREVER
        for number in range(first, len(self._calls)):
            if done >> number & 1:
                continue
            call = self._calls[number]
            if call.called > soonest_return:
                break
            soonest_return = min(soonest_return, call.returned)
            (unknown if call.answer is None else found).append(number)
        found.sort(key=lambda number: self._calls[number].returned)
        if self._shuffle is not None:
            self._shuffle.shuffle(unknown)
            if self._shuffle.random() < 0.5:
                self._shuffle.shuffle(found)
        return found + unknown
