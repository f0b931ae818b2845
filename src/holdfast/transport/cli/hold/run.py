"""`holdfast run`: owns a job for as long as a command runs."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.hold.renewal import clock
from holdfast.transport.cli.hold.supervisor import Holding, Signals, Stopped, hold
from holdfast.transport.cli.long_wait import FOR_EVER, ask_patiently, is_granted
from holdfast.transport.cli.output import escape, say
from holdfast.transport.cli.verbs.verb import Verb

RELEASE_SECONDS = 5.0


def run(verb: Verb, arguments: dict[str, Any]) -> int:  # noqa: ARG001 - every room has this shape
    """Claim, run, release; the exit status is the command's."""
    signals = Signals()
    command, conflict_status = arguments.pop("command"), arguments.pop("conflict_status")
    wait, nonblock = arguments.pop("wait_seconds"), arguments.pop("nonblock")
    arguments.pop("output")
    client = client_for(arguments)
    answer: dict[str, Any] = {}
    try:
        sent_at = clock()
        answer = client.call("claim_job", **arguments)
        if answer["status"] == "held" and not nonblock:
            say(f"holdfast: waiting for {answer['job_id']}, held by {escape(answer['owner'] or 'nobody')}")
            answer = ask_patiently(client, "claim_job", arguments, FOR_EVER if wait is None else wait, is_granted)
            sent_at = _confirm(client, answer)
        if answer["status"] == "held":
            say(f"holdfast: {answer['job_id']} is held by {escape(answer['owner'] or 'nobody')}")
            return exit_status.HELD if conflict_status is None else int(conflict_status)
        return hold(_holding(client, answer, sent_at), command, signals)
    except Stopped as stopped:
        if "lease_id" in answer:
            with suppress(HoldfastError):
                _holding(client, answer, 0.0).release()
        return stopped.status


def _confirm(client: Client, answer: dict[str, Any]) -> float:
    """When a grant after a wait began is anybody's guess; a heartbeat makes it a time we know."""
    sent_at = clock()
    if answer["status"] != "held":
        client.call("heartbeat_job", job_id=answer["job_id"], lease_id=answer["lease_id"])
    return sent_at


def _holding(client: Client, answer: dict[str, Any], sent_at: float) -> Holding:
    proof = {"job_id": answer["job_id"], "lease_id": answer["lease_id"]}
    return Holding(
        answer["job_id"],
        float(answer["ttl_seconds"]),
        sent_at,
        {
            "HOLDFAST_JOB": answer["job_id"],
            "HOLDFAST_TOKEN": str(answer["token"]),
            "HOLDFAST_LEASE": answer["lease_id"],
            "HOLDFAST_EXPIRES_AT": answer["expires_at"],
        },
        lambda limit: client.call("heartbeat_job", timeout=limit, deadline=limit, **proof),
        partial(client.call, "release_job", timeout=RELEASE_SECONDS, deadline=RELEASE_SECONDS, **proof),
    )
