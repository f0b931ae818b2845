"""Runs a command for as long as a lease is surely ours: a job, or the leadership of an election."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

from holdfast.client.errors import HoldfastError
from holdfast.client.leases.clock import now
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.hold.child import Child
from holdfast.transport.cli.hold.renewal import Renewal
from holdfast.transport.cli.hold.terminal import Terminal
from holdfast.transport.cli.output import escape, print_message

FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
LONGEST_GRACE = 5.0
GRACE_PART = 0.1
"""Part of the TTL that a command has between TERM and KILL."""
NOT_FOUND, NOT_RUNNABLE = 127, 126
NOTICE_SECONDS = 0.2


class Stopped(Exception):
    """A signal came before the command was started."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.status = 128 + number


class Signals:
    """Forwards signals to the command, once it is started."""

    def __init__(self) -> None:
        self.child: Child | None = None
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup: ignored signals stay ignored
                signal.signal(number, self._forward)

    @contextmanager
    def noticed(self) -> Iterator[None]:
        """Notice signals soon, although this thread waits for an answer.

        A signal that comes right before a system call does not interrupt it, and Python runs the handler after the
        call: up to a minute later. A timer interrupts it again and again.
        """
        before = signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, NOTICE_SECONDS, NOTICE_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _forward(self, number: int, _: FrameType | None) -> None:
        if self.child is None:
            raise Stopped(number)
        self.child.signal(number)


class HeldLease(NamedTuple):
    """A granted lease, with how to renew and release it."""

    name: str
    ttl: float
    sent_at: float
    """When the request was sent that last renewed it, on the clock of `now`."""
    environment: dict[str, str]
    renew: Callable[[float], float]
    """Renews the lease and returns the seconds it was granted for; the argument limits the request, in seconds."""
    release: Callable[[int | None], object]
    """Releases the lease; the argument is the command's exit status, None if it did not run."""


def hold(lease: HeldLease, command: list[str], signals: Signals) -> int:
    """Run the command under the lease, then release it; the exit status."""
    renewal = Renewal(lease.renew, lease.ttl, lease.sent_at)
    terminal = Terminal()
    status: int | None = None
    try:
        try:
            child = _start(command, os.environ | lease.environment, signals, terminal)
        except OSError as error:
            print_message(f"holdfast: cannot run {command[0]}: {error.strerror}")
            return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
        renewal.start()
        status = _watch(child, renewal, terminal, min(LONGEST_GRACE, lease.ttl * GRACE_PART))
        return status
    finally:
        renewal.stop()
        terminal.enter_foreground()
        if renewal.lost is None:
            _release(lease, status)


def _start(command: list[str], environment: dict[str, str], signals: Signals, terminal: Terminal) -> Child:
    """Start the command with signals blocked: one that came in between would release the lease under it."""

    def prepare() -> None:
        terminal.enter_foreground()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)

    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:
        signals.child = Child(command, environment, prepare)
        return signals.child
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)


def _watch(child: Child, renewal: Renewal, terminal: Terminal, grace: float) -> int:
    """Wait for the command; end it in time if the lease is lost. The exit status."""
    while now() < renewal.deadline - grace:
        status = child.wait()
        if status is not None:
            return status
        if terminal.stop_with(child.group) and now() < renewal.deadline - grace:
            child.signal(signal.SIGCONT)
    reason = "no heartbeat was answered in time" if renewal.lost is None else renewal.lost.message
    print_message(f"holdfast: the lease is lost, ending the command: {escape(reason)}")
    child.end(now() + grace if renewal.lost is not None else renewal.deadline)
    return exit_status.STALE


def _release(lease: HeldLease, status: int | None) -> None:
    try:
        lease.release(status)
    except HoldfastError as error:
        print_message(
            f"holdfast: {lease.name} was not released and stays held until its TTL is over: {escape(error.message)}"
        )
