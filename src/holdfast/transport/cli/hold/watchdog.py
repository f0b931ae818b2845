"""Watchdog process: kills the command's process group if we die, however we end."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

_DISMISSED = b"."


class Watchdog:
    """Forked process that reads from a pipe of which only we hold the other end.

    If the pipe closes without a byte, we are dead. (The kernel can kill our child when we die, but not the processes
    that the child has started.)
    """

    def __init__(self, group: int) -> None:
        reader, self._pipe = os.pipe()
        self._process: int | None = os.fork()
        if self._process == 0:
            _watch(group, reader, self._pipe)
        os.close(reader)

    def dismiss(self) -> None:
        """End the watchdog without touching the group."""
        if self._process is None:
            return
        with suppress(BrokenPipeError):
            os.write(self._pipe, _DISMISSED)
        os.close(self._pipe)
        os.waitpid(self._process, 0)
        self._process = None


def _watch(group: int, reader: int, writer: int) -> None:
    """Main function of the watchdog; never returns. It gives up our terminal and our standard streams."""
    try:
        os.close(writer)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        if os.read(reader, 1) != _DISMISSED:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
    finally:
        os._exit(0)
