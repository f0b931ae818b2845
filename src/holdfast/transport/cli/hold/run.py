"""Verb `run`: holds a job while a command runs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.client.leases.clock import now
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.jobs import take_names
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.hold.supervisor import HeldLease, Signals, Stopped, hold
from holdfast.transport.cli.long_wait import NO_LIMIT, call_until, is_granted
from holdfast.transport.cli.output import escape, print_message
from holdfast.transport.cli.verbs.verb import Invocation

RELEASE_SECONDS = 5.0


def run(invocation: Invocation) -> int:
    """Claim, run the command, release; the exit status is the command's."""
    signals = Signals()
    arguments = invocation.arguments
    command, wait, nonblock = (arguments.pop(field) for field in ("command", "wait_seconds", "nonblock"))
    is_done, done_for = arguments.pop("done"), arguments.pop("done_for_seconds")
    ending = {"outcome": "done", "done_for_seconds": done_for} if is_done else {}
    client, operation = client_for(arguments), take_names(arguments)
    answer: dict[str, Any] = {}
    try:
        sent_at = now()
        answer = client.call(operation, **arguments)
        if answer["status"] == "held" and not nonblock:
            print_message(
                f"holdfast: waiting for {answer['job_id']}, held by {escape(answer['owner'] or 'another owner')}"
            )
            with signals.noticed():
                answer = call_until(client, operation, arguments, NO_LIMIT if wait is None else wait, is_granted)
            sent_at = _confirm(client, answer)
        if answer["status"] == "held":
            print_message(f"holdfast: {answer['job_id']} is held by {escape(answer['owner'] or 'another owner')}")
            return invocation.held_status(exit_status.HELD)
        if answer["status"] == "done":
            print_message(f"holdfast: {answer['job_id']} is done since {answer['at']}")
            return exit_status.OK
        return hold(_held_lease(client, answer, sent_at, ending), command, signals)
    except Stopped as stopped:
        if "lease_id" in answer:
            with suppress(HoldfastError):
                _held_lease(client, answer, 0.0).release(None)
        return stopped.status


def _confirm(client: Client, answer: dict[str, Any]) -> float:
    """Renew a lease that was granted after a wait: when the grant happened is not known, when we renew is."""
    sent_at = now()
    if "lease_id" in answer:
        client.call("heartbeat_job", job_id=answer["job_id"], lease_id=answer["lease_id"])
    return sent_at


def _held_lease(
    client: Client, answer: dict[str, Any], sent_at: float, ending: dict[str, Any] | None = None
) -> HeldLease:
    """The lease; `ending` has the fields of its release if the command succeeds."""
    proof = {"job_id": answer["job_id"], "lease_id": answer["lease_id"]}

    def renew(limit: float) -> dict[str, Any]:
        return client.call("heartbeat_job", timeout=limit, deadline=limit, **proof)

    def expires_in(limit: float) -> float:
        """Seconds that are certain: an offer lasts longer, but the command may withdraw it."""
        renewed = renew(limit)
        return float(min(renewed["expires_in_seconds"], renewed["ttl_seconds"]))

    def release(status: int | None) -> None:
        if "offered" in renew(RELEASE_SECONDS):  # the command offered the job: it is held for who accepts
            return
        fields = ending if ending is not None and status == 0 else {}
        client.call("release_job", timeout=RELEASE_SECONDS, deadline=RELEASE_SECONDS, **proof, **fields)

    return HeldLease(
        answer["job_id"],
        float(answer["ttl_seconds"]),
        sent_at,
        {
            "HOLDFAST_JOB": answer["job_id"],
            "HOLDFAST_TOKEN": str(answer["token"]),
            "HOLDFAST_LEASE": answer["lease_id"],
            "HOLDFAST_EXPIRES_AT": answer["expires_at"],
        },
        expires_in,
        release,
    )
