"""Load: requests on many connections, one in flight on each, by a program in C or, without a compiler, in Python."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench import python_load
from bench.scripts import Load, Step
from bench.tree import ROOT

ATTEMPTS = 4
NUMBERS = 20_000_000
"""More than one attempt uses."""
PAUSE = 2.0


class Unexpected(AssertionError):
    """An answer was not the expected one."""


class Latencies(msgspec.Struct):
    """Number of answers and how long they took, in seconds."""

    count: int
    p50: float
    p99: float


class Result(msgspec.Struct):
    """What a run did. `cpu` is the processor time of the load generator itself, in seconds."""

    answered: int
    finished: int
    seconds: float
    cpu: float
    all: Latencies
    steps: list[Latencies]
    captures: list[tuple[str, str]] = []
    """Number and first captured text of every finished script."""

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.answered / self.seconds

    @property
    def cycles_rate(self) -> float:
        """Finished scripts per second."""
        return self.finished / self.seconds


_parse = msgspec.json.Decoder(Result).decode


def run(port: int, load: Load, *, connections: int, seconds: float) -> Result:
    """Run the scripts on all connections until the time is over.

    A server that other programs keep from running refuses requests (503); then it is measured again.
    """
    for attempt in range(ATTEMPTS - 1):
        try:
            # Other names than the last time: those may still be held.
            first = attempt * NUMBERS
            return start(port, load, connections=connections, seconds=seconds, first=first).result()
        except Unexpected as error:
            if " 503 " not in str(error):
                raise
            print("the server was overloaded and refused a request: measured again", file=sys.stderr)
            time.sleep(PAUSE)
    return start(port, load, connections=connections, seconds=seconds, first=(ATTEMPTS - 1) * NUMBERS).result()


def start(port: int, load: Load, *, connections: int, seconds: float, first: int = 0) -> Running:
    """Start a run without waiting for its end, so that several can run at once. `first` is its first number."""
    return Running(port, load, connections, seconds, first)


class Running:
    """A run of the load generator in a process of its own."""

    def __init__(self, port: int, load: Load, connections: int, seconds: float, first: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hf-load-")
        folder = Path(self._folder.name)
        self._captures = folder / "captures"
        (folder / "scripts").write_bytes(written(load))
        command = [
            *program(), str(port), str(connections), str(seconds), str(folder / "scripts"), str(first),
            str(int(load.is_once)), str(self._captures) if load.keeps_captures else "-", *load.markers,
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def result(self) -> Result:
        """Wait for the end; raises `Unexpected` for an answer that was not expected."""
        with self._folder:
            output, error = self._process.communicate()
            if self._process.returncode != 0:
                raise Unexpected(error.decode())
            result = _parse(output)
            if self._captures.exists():
                lines = [line.partition(" ") for line in self._captures.read_text().splitlines()]
                result.captures = [(number, text) for number, _, text in lines]
        return result


def written(load: Load) -> bytes:
    """The scripts in the form that the load generators read: `load.c` explains it."""
    return b"".join(_written_step(number, step) for number, script in enumerate(load.scripts) for step in script)


def _written_step(number: int, step: Step) -> bytes:
    texts = [text.encode() for text in (step.expected, step.head, step.body)]
    lengths = " ".join(str(len(text)) for text in texts)
    return f"{number} {step.lines} {lengths}\n".encode() + b"".join(texts)


@functools.cache
def program() -> list[str]:
    """The command of the load generator: the one in C, compiled when it is new, or the one in Python."""
    source = Path(__file__).with_name("load.c")
    binary = ROOT / ".venv" / f"load-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not binary.exists() and not _compile(source, binary):
        return python_load.COMMAND
    return [str(binary)]


def _compile(source: Path, binary: Path) -> bool:
    """Whether there is a compiler that accepts it. Several processes may compile at once."""
    compiler = shutil.which("cc")
    if compiler is None:
        return False
    unfinished = binary.with_suffix(f".{os.getpid()}")
    done = subprocess.run([compiler, "-O2", "-o", unfinished, source], check=False, capture_output=True)
    if done.returncode == 0:
        unfinished.rename(binary)
    return done.returncode == 0
