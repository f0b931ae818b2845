"""Lends our terminal to a group of processes and takes it back, so that keys like Ctrl-C reach the command alone."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress


class Terminal:
    """The terminal we were started from; without one, nothing here does anything."""

    def __init__(self) -> None:
        self._ours = os.getpgrp()
        self._here = sys.stdin is not None and sys.stdin.isatty() and os.tcgetpgrp(0) == self._ours

    def take(self) -> None:
        """The caller's group is in front from now on."""
        if self._here:
            self._give(os.getpgrp())

    def rest(self, group: int) -> bool:
        """If the group was stopped by its terminal, stop with it, as the shell expects; true once `fg` woke us."""
        if not self._here or not _is_stopped(group):
            return False
        self.take()
        os.kill(0, signal.SIGSTOP)
        self._give(group)
        return True

    def _give(self, group: int) -> None:
        """Put a group in front. Whoever is behind must ignore SIGTTOU to ask for that."""
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(OSError):
            os.tcsetpgrp(0, group)
        signal.signal(signal.SIGTTOU, before)


def _is_stopped(process: int) -> bool:
    """Whether it has stopped since we last asked; it stays there to be waited for."""
    if not hasattr(os, "waitid"):
        return False  # some systems cannot tell
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, process, os.WSTOPPED | os.WNOHANG) is not None
    return False
