"""Verbs `queue pause`, `queue resume` and `queue drain`."""

from __future__ import annotations

import time

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import call
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.display.answers import print_answer
from holdfast.transport.cli.long_wait import NO_LIMIT
from holdfast.transport.cli.verbs.verb import Invocation

POLL_SECONDS = 0.5


def pause(invocation: Invocation) -> int:
    """`queue pause`."""
    invocation.arguments["paused"] = True
    return call(invocation)


def resume(invocation: Invocation) -> int:
    """`queue resume`."""
    invocation.arguments["paused"] = False
    return call(invocation)


def drain(invocation: Invocation) -> int:
    """`queue drain`: pause, then read the queue until nothing runs."""
    wait = invocation.arguments.pop("wait_seconds")
    client = client_for(invocation.arguments)
    answer = client.call("set_queue", **invocation.arguments, paused=True)
    end = time.monotonic() + (NO_LIMIT if wait is None else wait)
    while answer["running"] and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
        answer = client.call("read_queue", type=invocation.arguments["type"])
    print_answer(answer, invocation)
    return exit_status.HELD if answer["running"] else exit_status.OK
