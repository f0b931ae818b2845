"""Runs seeds, and names the command that replays a failing one."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable

from tests.simulation.clients import Activity
from tests.simulation.virtual_time import Runtime, simulated_runtime
from tests.simulation.world import BrokenPromise, World

SOMETIMES = (
    "expired", "takeover", "refused stale holder", "unknown outcome", "replayed answer", "crash inside a commit",
    "done", "claimed again", "offered", "handed_over",
    "crash", "extended", "lost race", "locked row", "lost notice", "waiter served", "duplicated request", "lost answer",
    "step of the wall clock", "outage", "suspended server", "session ended with a lease", "reissued", "resumed",
    "renewed by a write for its session",
    "waiting", "reserved", "reduced", "enlarged", "left",
    "dependency_met", "one of several dependencies met",
    "asked", "claim with an answer", "default answer", "approved", "rejected", "unanswered", "refused key",
    "paused queue", "last place of a queue", "last place of a key", "over at its deadline",
    "dead_lettered", "requeued", "cancelled", "due", "forced", "snapshot", "purged", "forgotten", "delivered again",
)  # fmt: skip
"""What a large number of seeds must have seen at least once; otherwise they prove too little."""


def run_seed(seed: int, runtime: Runtime) -> World:
    """Run one seed; a broken promise names the command that shows what happened."""
    world = World(seed, runtime)
    try:
        world.run()
    except BrokenPromise as broken:
        replay = f"python -m tests.simulation {seed} --trace"
        raise AssertionError(f"seed {seed}: {broken}\nThis shows how it came about: {replay}") from broken
    return world


def run_seeds(seeds: Iterable[int]) -> Counter[str]:
    """Run all seeds; returns how often each interesting thing happened."""
    seen: Counter[str] = Counter()
    with simulated_runtime() as runtime:
        gc.disable()  # a world is small and has few cycles; collecting after every few costs a fifth of the time
        try:
            for number, seed in enumerate(seeds):
                seen.update(run_seed(seed, runtime).seen)
                if number % 100 == 99:
                    gc.collect()
        finally:
            gc.enable()
    return seen


def find_failure(seeds: Iterable[int], only: type[Activity] | None = None) -> str | None:
    """The first broken promise, or None if no seed breaks any."""
    with simulated_runtime() as runtime:
        for seed in seeds:
            try:
                World(seed, runtime, only=only).run()
            except BrokenPromise as broken:
                return str(broken)
    return None
