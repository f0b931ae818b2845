"""Server processes forked from a parent that has imported all modules: imports take nine tenths of a start.

One parent per run imports what `holdfast` needs, once, and is forked for each server and each plain verb. The child
then does what `python -m holdfast` does, with the words, the environment, the folder and the files it was given; it is
killed, paused and waited for like any process. In `make prove` servers are started without a
fork, as `python -m holdfast`.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from multiprocessing import forkserver
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, Any

from holdfast.transport.cli.main import main

_NEEDED = [
    __name__,
    "holdfast.store.postgres",
    "holdfast.store.sqlite",
    "holdfast.transport.cli.commands.call",
    "holdfast.transport.cli.commands.serve",
    "holdfast.transport.http.protocol",
    "holdfast.transport.mcp.server",
    "mcp.server.streamable_http_manager",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
]
"""What the parent imports. None of it may read random bytes or open files when imported, as all children share it."""

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(_NEEDED)
_turn = threading.Lock()
"""An exit status can be read only once, and starting a process reads the status of all others."""


def start_parent_for_all_workers() -> None:
    """Start the parent now, so that all processes forked from this one share it instead of starting their own."""
    forkserver.ensure_running()
    os.register_at_fork(after_in_child=_share_parent)


def _share_parent() -> None:
    """The parent runs as long as the process that started it, whose child it is: nobody else can look after it."""
    forkserver._forkserver.ensure_running = lambda: None  # type: ignore[attr-defined]


class Forked:
    """The part of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        words: list[str],
        environment: dict[str, str],
        *,
        out: IO[Any],
        err: IO[Any],
        stdin: IO[Any] | None = None,
        folder: Path | None = None,
    ) -> None:
        places = [os.devnull if file is None else _place(file) for file in (stdin, out, err)]
        given = (words, environment, places, folder or Path.cwd())
        self._process = _forks.Process(target=_live, args=given, daemon=True)
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


def _place(file: IO[Any]) -> str:
    """A path by which another process can open a deleted file."""
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


def _live(words: list[str], environment: dict[str, str], places: list[str], folder: Path) -> None:
    """Run a child process to its end."""
    gc.freeze()  # what the parent imported: a collection would copy the memory of all of it
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, place in enumerate(places):
        opened = os.open(place, os.O_WRONLY | os.O_APPEND if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open until the process ends
    sys.argv = ["holdfast", *words]
    main()
