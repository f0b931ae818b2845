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
        """The caller's group is in front from now on. Whoever is behind must ignore SIGTTOU to ask for that."""
        if not self._here:
            return
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(OSError):
            os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, before)

    def rest(self, group: int) -> None:
        """If the group was stopped by its terminal, stop with it; the shell's `fg` wakes both."""
        if not self._here or not _is_stopped(group):
            return
        self.take()
        os.kill(0, signal.SIGSTOP)
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(OSError):
            os.tcsetpgrp(0, group)
        signal.signal(signal.SIGTTOU, before)


def _is_stopped(process: int) -> bool:
    """Whether it has stopped since we last asked; it stays there to be waited for."""
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, process, os.WSTOPPED | os.WNOHANG) is not None
    return False
