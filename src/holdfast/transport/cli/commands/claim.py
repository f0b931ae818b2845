"""`holdfast claim`: like every verb that asks once, but it may stand in line longer than one request can."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.long_wait import ask_patiently, is_granted
from holdfast.transport.cli.output import show
from holdfast.transport.cli.verbs.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Claim, show, and tell by the exit status whether it is ours."""
    output, conflict_status = arguments.pop("output"), arguments.pop("conflict_status")
    wait = arguments.pop("wait_seconds") or 0.0
    answer = ask_patiently(client_for(arguments), verb.operation, arguments, wait, is_granted)
    show(answer, verb, output)
    return exit_status.of_claim(answer, conflict_status)
