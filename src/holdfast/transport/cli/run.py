"""`holdfast run`: owns a job for as long as a command runs."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.transport.cli import exits
from holdfast.transport.cli.call import client_for
from holdfast.transport.cli.child import Child
from holdfast.transport.cli.keeping import Keeper, clock
from holdfast.transport.cli.patience import FOR_EVER, ask_patiently, is_granted
from holdfast.transport.cli.show import escape, say
from holdfast.transport.cli.terminal import Terminal
from holdfast.transport.cli.verb import Verb

HANDED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
LONGEST_GRACE = 5.0
GRACE_PART = 0.1
"""How much of the lease a command has between TERM and KILL."""
RELEASE_SECONDS = 5.0
NOT_FOUND, NOT_RUNNABLE = 127, 126


class Stopped(Exception):
    """A signal came before there was a command to hand it to."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.number = number


class Signals:
    """Hands signals on to the command, once there is one."""

    def __init__(self) -> None:
        self.child: Child | None = None
        for number in HANDED_ON:
            signal.signal(number, self._heard)

    def _heard(self, number: int, _: FrameType | None) -> None:
        if self.child is None:
            raise Stopped(number)
        self.child.signal(number)


def run(verb: Verb, arguments: dict[str, Any]) -> int:  # noqa: ARG001 - every room has this shape
    """Claim, run, release; the exit status is the command's."""
    signals = Signals()
    command, conflict_status = arguments.pop("command"), arguments.pop("conflict_status")
    wait, nonblock = arguments.pop("wait_seconds"), arguments.pop("nonblock")
    arguments.pop("output")
    client = client_for(arguments)
    try:
        sent_at = clock()
        answer = client.call("claim_job", **arguments)
        if answer["status"] == "held" and not nonblock:
            say(f"holdfast: waiting for {answer['job_id']}, held by {escape(answer['owner'] or 'nobody')}")
            answer = ask_patiently(client, "claim_job", arguments, FOR_EVER if wait is None else wait, is_granted)
            sent_at = _confirm(client, answer)
        if answer["status"] == "held":
            say(f"holdfast: {answer['job_id']} is held by {escape(answer['owner'] or 'nobody')}")
            return exits.HELD if conflict_status is None else int(conflict_status)
        return _hold(client, answer, sent_at, command, signals)
    except Stopped as stopped:
        return 128 + stopped.number


def _confirm(client: Client, answer: dict[str, Any]) -> float:
    """When a grant after a wait began is anybody's guess; a heartbeat makes it a time we know."""
    sent_at = clock()
    if answer["status"] != "held":
        client.call("heartbeat_job", job_id=answer["job_id"], lease_id=answer["lease_id"])
    return sent_at


def _hold(client: Client, answer: dict[str, Any], sent_at: float, command: list[str], signals: Signals) -> int:
    """Everything between the grant and the release."""
    job_id, lease_id, ttl = answer["job_id"], answer["lease_id"], float(answer["ttl_seconds"])
    keeper = Keeper(client, job_id, lease_id, ttl, sent_at)
    terminal = Terminal()
    try:
        try:
            child = Child(command, _environment(answer), terminal.take)
        except OSError as error:
            say(f"holdfast: cannot run {command[0]}: {error.strerror}")
            return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
        signals.child = child
        keeper.start()
        return _watch(child, keeper, terminal, min(LONGEST_GRACE, ttl * GRACE_PART))
    finally:
        keeper.stop()
        terminal.take()
        if keeper.lost is None:
            _release(client, job_id, lease_id)


def _watch(child: Child, keeper: Keeper, terminal: Terminal, grace: float) -> int:
    """The command's own status; or it is ended, in time, because the job is no longer surely ours."""
    while clock() < keeper.deadline - grace:
        status = child.wait()
        if status is not None:
            return status
        terminal.rest(child.group)
    why = "no heartbeat got through in time" if keeper.lost is None else keeper.lost.message
    say(f"holdfast: ownership is lost, ending the command: {escape(why)}")
    child.end(clock() + grace if keeper.lost is not None else keeper.deadline)
    return exits.STALE


def _release(client: Client, job_id: str, lease_id: str) -> None:
    try:
        client.call("release_job", timeout=RELEASE_SECONDS, deadline=RELEASE_SECONDS, job_id=job_id, lease_id=lease_id)
    except HoldfastError as error:
        say(f"holdfast: {job_id} was not released and is free when its time is over: {escape(error.message)}")


def _environment(answer: dict[str, Any]) -> dict[str, str]:
    return os.environ | {
        "HOLDFAST_JOB": answer["job_id"],
        "HOLDFAST_TOKEN": str(answer["token"]),
        "HOLDFAST_LEASE": answer["lease_id"],
        "HOLDFAST_EXPIRES_AT": answer["expires_at"],
    }
