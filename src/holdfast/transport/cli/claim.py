"""`holdfast claim`: like every verb that asks once, but it may stand in line longer than one request can."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli import exits
from holdfast.transport.cli.call import client_for
from holdfast.transport.cli.patience import ask_patiently, is_granted
from holdfast.transport.cli.show import show
from holdfast.transport.cli.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Claim, show, and tell by the exit status whether it is ours."""
    output, conflict_status = arguments.pop("output"), arguments.pop("conflict_status")
    wait = arguments.pop("wait_seconds") or 0.0
    answer = ask_patiently(client_for(arguments), verb.operation, arguments, wait, is_granted)
    show(answer, verb, output)
    return exits.of_claim(answer, conflict_status)
