"""A process that waits for our death, so that a group of processes cannot outlive us, however we end."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

_ALL_IS_WELL = b"."


class Watchdog:
    """The kernel can kill our child when we die, but not what the child has started. This can.

    It holds one end of a pipe. The other end is ours alone: when it closes without a word, we are gone.
    """

    def __init__(self, group: int) -> None:
        watching, self._pipe = os.pipe()
        self._process: int | None = os.fork()
        if self._process == 0:
            _watch(group, watching, self._pipe)
        os.close(watching)

    def dismiss(self) -> None:
        """All is well: it goes without touching the group."""
        if self._process is None:
            return
        with suppress(BrokenPipeError):
            os.write(self._pipe, _ALL_IS_WELL)
        os.close(self._pipe)
        os.waitpid(self._process, 0)
        self._process = None


def _watch(group: int, watching: int, ours: int) -> None:
    """The guardian's whole life. It leaves our terminal and our streams alone, and never returns."""
    try:
        os.close(ours)
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        if os.read(watching, 1) != _ALL_IS_WELL:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
    finally:
        os._exit(0)
