"""Verbs `claim` and `guard`."""

from __future__ import annotations

import os
from typing import Any

from holdfast.client.errors import HoldfastError
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.held_leases import remembering
from holdfast.transport.cli.long_wait import call_until, is_granted
from holdfast.transport.cli.output import escape, print_answer, print_message
from holdfast.transport.cli.verbs.verb import Invocation, WrongUsage


def claim(invocation: Invocation) -> int:
    """Claim a job, and wait for it longer than one request can."""
    arguments = invocation.arguments
    wait = arguments.pop("wait_seconds") or 0.0
    with remembering(invocation) as remember:
        client, operation = client_for(arguments), take_names(arguments)
        answer = call_until(client, operation, arguments, wait, is_granted)
        remember(answer)
    print_answer(answer, invocation.verb, invocation.output)
    return exit_status.of_claim(answer, invocation.held_status(exit_status.HELD))


def take_names(arguments: dict[str, Any]) -> str:
    """The operation that claims one job or, with `--any`, any of several; changes the arguments accordingly."""
    if not arguments.pop("any"):
        return "claim_job"
    if arguments.pop("offer", None) is not None:
        raise WrongUsage("an offer is of one job: give --offer without --any")
    arguments["any_of"] = arguments.pop("job_id").split(",")
    return "claim_any_job"


def guard(invocation: Invocation) -> int:
    """Check for hooks that a job is still held: prints nothing if it is. Any failed heartbeat means stop."""
    arguments = invocation.arguments
    job_id = arguments["job_id"] = arguments["job_id"] or os.environ.get("HOLDFAST_JOB")
    if job_id is None or arguments["lease_id"] is None:
        raise WrongUsage("no job to guard: give its name and --lease, or run it inside `holdfast run`")
    try:
        with remembering(invocation) as remember:
            remember(client_for(arguments).call(invocation.verb.operation, **arguments))
    except HoldfastError as error:
        print_message(f"holdfast: stop work on {escape(job_id)}: {escape(error.message)} ({escape(error.code)})")
        return invocation.held_status(exit_status.STALE)
    return exit_status.OK
