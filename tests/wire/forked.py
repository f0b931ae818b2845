"""A process that has read its modules before it is born: nine tenths of a server's start are imports.

One parent per run imports what `holdfast serve` needs, once, and is forked for each server. The child then does
what `python -m holdfast` does, with the words, the environment, the folder and the output it was given; it is killed,
paused and waited for like any process. Starts from nothing have tests of their own, and `make prove` knows no others.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from multiprocessing.connection import wait
from typing import IO

from holdfast.transport.cli.main import main

_NEEDED = [
    __name__,
    "holdfast.store.postgres",
    "holdfast.store.sqlite",
    "holdfast.transport.cli.serve",
    "holdfast.transport.http.protocol",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
]
"""What the parent imports. None of it may draw chance or open anything when imported: all children would share it."""

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(_NEEDED)
_turn = threading.Lock()
"""A status can be read once only, and starting a process looks at the status of all others."""


class Forked:
    """As much of `subprocess.Popen` as a server needs."""

    def __init__(self, words: list[str], environment: dict[str, str], output: IO[bytes]) -> None:
        place = f"/proc/{os.getpid()}/fd/{output.fileno()}"
        self._process = _forks.Process(target=_live, args=(words, environment, place), daemon=True)
        with _turn:
            self._process.start()
        self.pid: int = self._process.pid or 0
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with _turn:
            self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        if not wait([self._process.sentinel], timeout):
            raise subprocess.TimeoutExpired("holdfast", timeout or 0.0)
        return self.poll()

    def send_signal(self, signal: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal)

    def terminate(self) -> None:
        self.send_signal(15)

    def kill(self) -> None:
        self.send_signal(9)


def _live(words: list[str], environment: dict[str, str], output: str) -> None:
    """The whole life of a child."""
    os.environ.clear()
    os.environ.update(environment)
    said = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.argv = ["holdfast", *words]
    main()
