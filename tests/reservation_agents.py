"""Many agents that reserve files at the same time, and the check of what they were granted by the log."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from holdfast.core.event import Event, apply
from holdfast.core.reservation.patterns import overlap
from holdfast.core.reservation.row import EXCLUSIVE, Reservation, patterns_in

_PATTERNS = ["**", "a/", "a/*", "a/b", "a/b/", "a/b/c", "*/b", "**/c", "d", "d/*", "?", "a/b/?", "e/**/f", "e/g/f"]


def some_patterns(rng: random.Random) -> tuple[str, ...]:
    """Up to three patterns, which often overlap those of others."""
    return tuple(rng.sample(_PATTERNS, rng.randint(1, 3)))


def run_agents(agents: int, rounds: int, one_round: Callable[[int, random.Random], None]) -> None:
    """Let each of the agents take rounds, until none is left; `one_round` reserves files and releases them."""
    numbers, lock, failures = iter(range(rounds)), threading.Lock(), []

    def agent(seed: int) -> None:
        rng = random.Random(seed)
        try:
            with suppress(StopIteration):
                while True:
                    with lock:
                        number = next(numbers)
                    one_round(number, rng)
        except Exception as error:  # reported by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=agent, args=(seed,)) for seed in range(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def check_grants(log: Iterable[Event]) -> int:
    """Whoever was granted met no holder and nobody that had waited longer; returns the number of grants."""
    now_open: dict[str, Reservation] = {}
    grants = 0
    for event in log:
        noun, _, row_id = event.subject.partition(":")
        if noun != "reservation":
            continue
        row = apply(now_open.get(row_id, Reservation(event.account, row_id)), event)
        if event.kind == "reservation.reserved":
            grants += 1
            _check_grant(row, now_open)
        if row.ended_at is not None:
            now_open.pop(row_id, None)
        else:
            now_open[row_id] = row
    assert now_open == {}
    return grants


def _check_grant(row: Reservation, now_open: dict[str, Reservation]) -> None:
    before = now_open.get(row.id)
    for other in now_open.values():
        if other.id == row.id or EXCLUSIVE not in (row.mode, other.mode):
            continue
        overlaps = any(overlap(one, two) for one in patterns_in(row.paths) for two in patterns_in(other.paths))
        assert not (overlaps and other.proof is not None), (row, other)
        if other.proof is None:
            assert not (overlaps and (before is None or other.arrived_at < before.arrived_at)), (row, other)
