"""What every system under comparison is: a program that can be missing, and a way to measure its cycles."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec
import psutil

from bench.load import run
from bench.scripts import Load
from bench.serving import cpu_seconds

LOCKS, QUEUES = "locks: acquire and release of a new name", "queues: create, claim and complete"


class Outcome(msgspec.Struct, frozen=True):
    """Cycles per second, and CPU of the server per cycle in seconds."""

    cycles_rate: float
    cpu: float


Measure = Callable[[int, float], Outcome]
"""Takes the number of connections and the seconds."""


class Peer(msgspec.Struct, frozen=True):
    """One system. `open` runs it in a folder and gives the function that measures it."""

    name: str
    kind: str
    open: Callable[[Path], AbstractContextManager[Measure]]
    programs: tuple[str, ...] = ()
    """What must be on the PATH."""
    package: str = ""
    """Debian's package with these programs."""
    is_from_pypi: bool = False

    def is_missing(self) -> bool:
        """Whether a program that it needs is not installed."""
        return any(shutil.which(program) is None for program in self.programs)


@contextmanager
def process(command: list[str], folder: Path) -> Iterator[psutil.Process]:
    """Run a server inside the block. Its output goes to a file in the folder."""
    with (folder / "output").open("wb") as output:
        started = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        yield psutil.Process(started.pid)
    finally:
        started.terminate()
        started.wait()


def measured_by_load(port: int, processes: Sequence[psutil.Process], new_load: Callable[[], Load]) -> Measure:
    """Measure with the load generator; the CPU is that of these processes and all that they started."""

    def measure(connections: int, seconds: float) -> Outcome:
        before = sum(map(cpu_seconds, processes))
        result = run(port, new_load(), connections=connections, seconds=seconds)
        return Outcome(result.cycles_rate, (sum(map(cpu_seconds, processes)) - before) / result.finished)

    return measure
