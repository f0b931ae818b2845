"""`holdfast claim`: like every verb that asks once, but it may stand in line longer than one request can."""

from __future__ import annotations

import time
from typing import Any

from holdfast.transport.cli import exits
from holdfast.transport.cli.call import caller_of
from holdfast.transport.cli.caller import Caller
from holdfast.transport.cli.show import show
from holdfast.transport.cli.verb import Verb

LONGEST_WAIT = 60.0
"""Seconds that one request may wait."""


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Claim, show, and tell by the exit status whether it is ours."""
    output, conflict_status = arguments.pop("output"), arguments.pop("conflict_status")
    wait = arguments.pop("wait_seconds") or 0.0
    answer = claim_patiently(caller_of(arguments), wait, arguments)
    show(answer, verb, output)
    return exits.of_claim(answer, conflict_status)


def claim_patiently(caller: Caller, wait: float, arguments: dict[str, Any]) -> dict[str, Any]:
    """The claim's answer: granted, or held for as long as we were ready to wait."""
    over = time.monotonic() + wait
    while True:
        left = max(over - time.monotonic(), 0.0)
        turn = min(left, LONGEST_WAIT)
        answer = caller.call("claim_job", **arguments, wait_seconds=turn or None)
        if answer["status"] != "held" or left <= LONGEST_WAIT:
            return answer
