"""Repeats a waiting request until its answer is the expected one: one request waits a minute at most."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import Limited, OutcomeUnknown, ServerError, Unreachable
from holdfast.client.leases.clock import now
from holdfast.operations.bounds import WAIT

LONGEST_WAIT = float(WAIT.most)
"""Seconds that the server lets one request wait."""
RETRY_SECONDS = 1.0
NO_LIMIT = float("inf")

Answer = dict[str, Any]


def call_until(
    client: Client, operation: str, arguments: dict[str, Any], wait: float, is_done: Callable[[Answer], bool]
) -> Answer:
    """The first answer that is done, or the last one before the wait (in seconds) is over.

    Before the first answer an error is raised at once; later ones are retried, since the server was there before.
    """
    end = now() + wait
    answered = False
    while True:
        left = max(end - now(), 0.0)
        try:
            answer = client.call(operation, **arguments, wait_seconds=round(min(left, LONGEST_WAIT), 3))
        except (Limited, OutcomeUnknown, ServerError, Unreachable):
            if not answered or left <= RETRY_SECONDS:
                raise
            time.sleep(RETRY_SECONDS)
            continue
        answered = True
        if "waiting_id" in answer:  # the next request keeps the place in the queue
            arguments = arguments | {"waiting_id": answer["waiting_id"]}
        if is_done(answer) or left <= LONGEST_WAIT:
            return answer


def is_granted(answer: Answer) -> bool:
    """Whether a claim of a job was granted."""
    return bool(answer["status"] != "held")
