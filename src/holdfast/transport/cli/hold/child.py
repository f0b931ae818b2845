"""A command that runs under a lease: it receives our signals, can be ended in time, and never outlives us."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

from holdfast.client.leases.clock import now
from holdfast.transport.cli.hold.watchdog import Watchdog

_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 0.05


class Child:
    """The command and all processes it starts, as one process group."""

    def __init__(self, command: list[str], environment: Mapping[str, str], prepare: Callable[[], None]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - runs what the user asked for
            command,
            env=environment,
            process_group=0,
            preexec_fn=_before_exec(prepare),  # noqa: PLW1509 - no other thread runs yet
        )
        self.group = self._process.pid
        try:
            self._watchdog = Watchdog(self.group)
        except OSError:  # the lease is released for a command that cannot be run
            self.signal(signal.SIGKILL)
            self._process.wait()
            raise

    def wait(self, seconds: float = _POLL_SECONDS) -> int | None:
        """The exit status (128 plus the signal that ended it), or None if it still runs after `seconds`."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._watchdog.dismiss()
        return 128 - status if status < 0 else status

    def signal(self, number: int) -> None:
        """Send a signal to the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self.group, number)

    def end(self, deadline: float) -> None:
        """Send TERM, and KILL at the deadline to whatever of the group is left."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)  # a stopped process would not receive it
        while now() < deadline and self.wait(min(_POLL_SECONDS, max(deadline - now(), 0.0))) is None:
            pass
        self.signal(signal.SIGKILL)
        self._process.wait()
        self._watchdog.dismiss()


def _before_exec(prepare: Callable[[], None]) -> Callable[[], None]:
    """What the child does before it executes the command: on Linux it asks to be killed when we die."""
    parent = os.getpid()
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def before_exec() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # we died before it could ask
                os._exit(1)
        prepare()

    return before_exec
