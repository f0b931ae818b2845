"""Verb `run`: holds a job while a command runs."""

from __future__ import annotations

from typing import Any

from holdfast.client.client import Client
from holdfast.transport.cli.commands.jobs import take_names
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.hold.claimed import RELEASE_SECONDS, Claim, run_claimed
from holdfast.transport.cli.hold.supervisor import HeldLease, Signals
from holdfast.transport.cli.verbs.verb import Invocation


def run(invocation: Invocation) -> int:
    """Claim, run the command, release; the exit status is the command's."""
    signals = Signals()
    arguments = invocation.arguments
    command, wait, nonblock = (arguments.pop(field) for field in ("command", "wait_seconds", "nonblock"))
    is_done, done_for = arguments.pop("done"), arguments.pop("done_for_seconds")
    ending = {"outcome": "done", "done_for_seconds": done_for} if is_done else {}
    client, operation = client_for(arguments), take_names(arguments)
    claim = Claim(
        client,
        operation,
        arguments,
        lambda answer: (answer["job_id"], answer["owner"] or "another owner"),
        lambda answer, sent_at: _held_lease(client, answer, sent_at, ending),
    )
    return run_claimed(claim, command, signals, invocation, wait=0 if nonblock else wait)


def _held_lease(client: Client, answer: dict[str, Any], sent_at: float, ending: dict[str, Any]) -> HeldLease:
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
        fields = ending if status == 0 else {}
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
