"""Verb `claim`: one job, or with `--any` the first of several that is free."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.display.answers import print_answer
from holdfast.transport.cli.held_leases import remembering
from holdfast.transport.cli.long_wait import call_until, is_granted
from holdfast.transport.cli.verbs.verb import Invocation, WrongUsage


def claim(invocation: Invocation) -> int:
    """Claim a job, and wait for it longer than one request can."""
    arguments = invocation.arguments
    wait = arguments.pop("wait_seconds") or 0.0
    with remembering(invocation) as remember:
        client, operation = client_for(arguments), take_names(arguments)
        answer = call_until(client, operation, arguments, wait, is_granted)
        remember(answer)
    print_answer(answer, invocation)
    return exit_status.of_claim(answer, invocation.held_status(exit_status.HELD))


def take_names(arguments: dict[str, Any]) -> str:
    """The operation that claims one job or, with `--any`, any of several; changes the arguments accordingly."""
    if not arguments.pop("any"):
        return "claim_job"
    if arguments.pop("offer", None) is not None:
        raise WrongUsage("--offer and --any cannot be combined: an offer is for one job")
    arguments["any_of"] = arguments.pop("job_id").split(",")
    return "claim_any_job"
