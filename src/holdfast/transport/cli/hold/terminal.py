"""Job control: makes the command the terminal's foreground group, so that Ctrl-C and Ctrl-Z reach it alone."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress


class Terminal:
    """The terminal we were started from; without one, all methods do nothing."""

    def __init__(self) -> None:
        group = os.getpgrp()
        self._is_foreground = sys.stdin is not None and sys.stdin.isatty() and os.tcgetpgrp(0) == group

    def enter_foreground(self) -> None:
        """Make the calling process's group the foreground group."""
        if self._is_foreground:
            self._set_foreground(os.getpgrp())

    def stop_with(self, group: int) -> bool:
        """If the group was stopped (Ctrl-Z), stop too, as the shell expects; true once `fg` continued us."""
        if not self._is_foreground or not _is_stopped(group):
            return False
        self.enter_foreground()
        os.kill(0, signal.SIGSTOP)
        self._set_foreground(group)
        return True

    def _set_foreground(self, group: int) -> None:
        """Make a group the foreground group. SIGTTOU is ignored, since a background process would be stopped by it."""
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(OSError):
            os.tcsetpgrp(0, group)
        signal.signal(signal.SIGTTOU, before)


def _is_stopped(process: int) -> bool:
    """Whether the process is stopped; it can still be waited for."""
    if not hasattr(os, "waitid"):
        return False  # not available on this system
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, process, os.WSTOPPED | os.WNOHANG) is not None
    return False
