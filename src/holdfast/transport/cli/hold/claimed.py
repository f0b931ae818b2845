"""Claims a job or files, waits while another holder has them, and runs a command under the lease."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.client.leases.clock import now
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.hold.supervisor import HeldLease, Signals, Stopped, hold
from holdfast.transport.cli.http_sender import ANSWER_SECONDS
from holdfast.transport.cli.long_wait import NO_LIMIT, Answer, call_until, is_granted
from holdfast.transport.cli.output import escape, print_message
from holdfast.transport.cli.verbs.verb import Invocation

RELEASE_SECONDS = 5.0


class Claim(NamedTuple):
    """What to claim, and how to hold what was granted."""

    client: Client
    operation: str
    arguments: Answer
    describe: Callable[[Answer], tuple[str, str]]
    """What an answer says is held, and who holds it."""
    lease: Callable[[Answer, float], HeldLease]
    """The granted lease; the number is when the request was sent that last renewed it, on the clock of `now`."""


def run_claimed(
    claim: Claim, command: list[str], signals: Signals, invocation: Invocation, *, wait: float | None
) -> int:
    """Claim, run the command, release; the exit status is the command's. `wait` is in seconds, None for no limit."""
    answer: Answer = {}
    try:
        sent_at = now()
        answer = claim.client.call(claim.operation, **claim.arguments)
        if answer["status"] == "held" and wait != 0:
            name, holder = claim.describe(answer)
            print_message(f"holdfast: waiting for {escape(name)}, held by {escape(holder)}")
            with signals.noticed():
                limit = NO_LIMIT if wait is None else wait
                answer = call_until(claim.client, claim.operation, claim.arguments, limit, is_granted)
            sent_at = _confirm(claim, answer)
        if answer["status"] == "held":
            name, holder = claim.describe(answer)
            print_message(f"holdfast: {escape(name)} is held by {escape(holder)}")
            return invocation.held_status(exit_status.HELD)
        if answer["status"] == "done":
            print_message(f"holdfast: {answer['job_id']} is done since {answer['at']}")
            return exit_status.OK
        return hold(claim.lease(answer, sent_at), command, signals)
    except Stopped as stopped:
        if "lease_id" in answer:
            with suppress(HoldfastError):
                claim.lease(answer, 0.0).release(None)
        return stopped.status


def _confirm(claim: Claim, answer: Answer) -> float:
    """Renew a lease that was granted after a wait: when the grant happened is not known, when we renew is."""
    sent_at = now()
    if "lease_id" in answer:
        claim.lease(answer, sent_at).renew(ANSWER_SECONDS)
    return sent_at
