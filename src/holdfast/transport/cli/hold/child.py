"""A command that runs under a lease: it gets our signals, ends when told, and never outlives us."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

from holdfast.transport.cli.hold.renewal import clock
from holdfast.transport.cli.hold.watchdog import Watchdog

_PR_SET_PDEATHSIG = 1
_STEP = 0.05


class Child:
    """The command and whatever it starts, as one group of processes."""

    def __init__(self, command: list[str], environment: Mapping[str, str], prepare: Callable[[], None]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - running what we are given is the point
            command,
            env=environment,
            process_group=0,
            preexec_fn=_first_of_all(prepare),  # noqa: PLW1509 - nothing else runs in this process yet
        )
        self.group = self._process.pid
        self._guardian = Watchdog(self.group)

    def wait(self, seconds: float = _STEP) -> int | None:
        """How it ended, if it does within so many seconds: its own status, or 128 and the signal."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._guardian.dismiss()
        return 128 - status if status < 0 else status

    def signal(self, number: int) -> None:
        """Hand a signal on to the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self.group, number)

    def end(self, deadline: float) -> None:
        """TERM, and KILL at the deadline for whatever of the group is left."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)  # a stopped process would not hear it
        while clock() < deadline and self.wait(min(_STEP, max(deadline - clock(), 0.0))) is None:
            pass
        self.signal(signal.SIGKILL)
        self._process.wait()
        self._guardian.dismiss()


def _first_of_all(prepare: Callable[[], None]) -> Callable[[], None]:
    """What the child does before it becomes the command: on Linux it asks to be killed when we die."""
    us = os.getpid()
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def begin() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != us:  # we died before it could ask
                os._exit(1)
        prepare()

    return begin
