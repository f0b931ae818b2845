"""`holdfast claim`: like every verb that asks once, but it may stand in line longer than one request can."""

from __future__ import annotations

import time
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import Limited, ServerError, Unreachable
from holdfast.transport.cli import exits
from holdfast.transport.cli.call import client_for
from holdfast.transport.cli.keeping import clock
from holdfast.transport.cli.show import show
from holdfast.transport.cli.verb import Verb

LONGEST_WAIT = 60.0
"""Seconds that one request may wait."""
PAUSE = 1.0


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Claim, show, and tell by the exit status whether it is ours."""
    output, conflict_status = arguments.pop("output"), arguments.pop("conflict_status")
    wait = arguments.pop("wait_seconds") or 0.0
    answer = claim_patiently(client_for(arguments), wait, arguments)
    show(answer, verb, output)
    return exits.of_claim(answer, conflict_status)


def claim_patiently(client: Client, wait: float, arguments: dict[str, Any]) -> dict[str, Any]:
    """The last answer: granted, or held for all the time we had. Trouble on the way is waited out as well."""
    over = clock() + wait
    answered = False
    while True:
        left = max(over - clock(), 0.0)
        turn = min(left, LONGEST_WAIT)
        try:
            answer = client.call("claim_job", **arguments, wait_seconds=turn or None)
        except (Limited, ServerError, Unreachable):
            if not answered or left <= PAUSE:
                raise
            time.sleep(PAUSE)
            continue
        answered = True
        if answer["status"] != "held" or left <= LONGEST_WAIT:
            return answer
