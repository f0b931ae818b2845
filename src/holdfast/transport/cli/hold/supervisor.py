"""Runs a command for as long as something is surely ours: a job, or the lead of a group."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

from holdfast.client.errors import HoldfastError
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.hold.child import Child
from holdfast.transport.cli.hold.renewal import Renewal, clock
from holdfast.transport.cli.hold.terminal import Terminal
from holdfast.transport.cli.output import escape, say

HANDED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
LONGEST_GRACE = 5.0
GRACE_PART = 0.1
"""How much of the lease a command has between TERM and KILL."""
NOT_FOUND, NOT_RUNNABLE = 127, 126


class Stopped(Exception):
    """A signal came before there was a command to hand it to."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.status = 128 + number


class Signals:
    """Hands signals on to the command, once there is one."""

    def __init__(self) -> None:
        self.child: Child | None = None
        for number in HANDED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup: what is ignored stays ignored
                signal.signal(number, self._heard)

    def _heard(self, number: int, _: FrameType | None) -> None:
        if self.child is None:
            raise Stopped(number)
        self.child.signal(number)


class Holding(NamedTuple):
    """What we own, how it is kept and how it is given back."""

    name: str
    ttl: float
    sent_at: float
    """When the request was sent that last renewed it, on our clock."""
    environment: dict[str, str]
    beat: Callable[[float], object]
    """Renew it within so many seconds."""
    release: Callable[[], object]


def hold(holding: Holding, command: list[str], signals: Signals) -> int:
    """Everything between the grant and the release; the exit status."""
    keeper = Renewal(holding.beat, holding.ttl, holding.sent_at)
    terminal = Terminal()
    try:
        try:
            child = _start(command, os.environ | holding.environment, signals, terminal)
        except OSError as error:
            say(f"holdfast: cannot run {command[0]}: {error.strerror}")
            return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
        keeper.start()
        return _watch(child, keeper, terminal, min(LONGEST_GRACE, holding.ttl * GRACE_PART))
    finally:
        keeper.stop()
        terminal.take()
        if keeper.lost is None:
            _release(holding)


def _start(command: list[str], environment: dict[str, str], signals: Signals, terminal: Terminal) -> Child:
    """Signals wait until the command is there to get them: none shall make us release what it still works on."""

    def prepare() -> None:
        terminal.take()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDED_ON)

    signal.pthread_sigmask(signal.SIG_BLOCK, HANDED_ON)
    try:
        signals.child = Child(command, environment, prepare)
        return signals.child
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDED_ON)


def _watch(child: Child, keeper: Renewal, terminal: Terminal, grace: float) -> int:
    """The command's own status; or it is ended, in time, because what it needs is no longer surely ours."""
    while clock() < keeper.deadline - grace:
        status = child.wait()
        if status is not None:
            return status
        if terminal.rest(child.group) and clock() < keeper.deadline - grace:
            child.signal(signal.SIGCONT)
    why = "no heartbeat got through in time" if keeper.lost is None else keeper.lost.message
    say(f"holdfast: ownership is lost, ending the command: {escape(why)}")
    child.end(clock() + grace if keeper.lost is not None else keeper.deadline)
    return exit_status.STALE


def _release(holding: Holding) -> None:
    try:
        holding.release()
    except HoldfastError as error:
        say(f"holdfast: {holding.name} was not released; it is free when its time is over: {escape(error.message)}")
