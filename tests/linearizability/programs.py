"""Programs that share one store while they are killed, suspended and cut off."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.linearizability.history import History
from tests.linearizability.program import read_history, run

END_SECONDS = 240
RUN = {"groups": 4, "workers": 3, "period_seconds": 1.0}

_forks = multiprocessing.get_context("forkserver")
"""A program is forked from a parent with imported modules: imports take nine tenths of a start."""


def start_process(options: dict[str, Any]) -> Any:
    """Start a program."""
    process = _forks.Process(target=run, args=(options,), daemon=True)
    process.start()
    return process


class Programs:
    """Several programs on one store; a killed one is replaced by a new one."""

    def __init__(self, url: str, folder: Path, *, seed: int, calls: int, ttl: int, steady: bool = True) -> None:
        self.url = url
        self.faults: Counter[str] = Counter()
        self._folder = folder
        self._enough = folder / "enough"
        common = {"url": url, "calls": calls, "enough": str(self._enough), "ttl": ttl, "steady": steady}
        self._options = {**common, "serving": True, "run": RUN}
        self._seed = seed
        self._files: list[Path] = []
        self._running: list[Any] = []

    def start(self) -> None:
        """Start one more program."""
        number = len(self._files)
        self._files.append(self._folder / f"program-{number}.jsonl")
        own = {"name": f"program-{number}", "seed": self._seed + number, "file": str(self._files[-1])}
        self._running.append(start_process(self._options | own))

    def kill_one(self, rng: random.Random) -> None:
        """Kill a program with SIGKILL and start another."""
        doomed = rng.choice(self._running)
        doomed.kill()
        doomed.join()
        self._running.remove(doomed)
        self.faults["kill"] += 1
        self.start()

    def suspend_one(self, rng: random.Random, seconds: float) -> None:
        """Suspend a program for so long."""
        paused = rng.choice(self._running)
        with suppress(ProcessLookupError):  # its connection was cut at its start
            os.kill(paused.pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(paused.pid, signal.SIGCONT)
        self.faults["suspend"] += 1

    def begun(self) -> bool:
        """Whether every program has made its first calls."""
        return all(path.exists() and path.stat().st_size > 0 for path in self._files)

    def finish(self) -> History:
        """Let the programs end when all have made their calls; the history of all of them."""
        self._enough.touch()
        for each in self._running:
            each.join(END_SECONDS)
            assert each.exitcode == 0, "a program failed: see its output"
        return read_history(self.url, [path for path in self._files if path.exists()])

    def stop(self) -> None:
        """Kill what still runs."""
        for each in self._running:
            each.kill()
            each.join()


def strike(faults: list[Callable[[], None]], rng: random.Random, pause: float) -> None:
    """Cause these faults in a random order, with a pause before each."""
    rng.shuffle(faults)
    for fault in faults:
        time.sleep(pause * rng.uniform(0.5, 1.5))
        fault()
