"""Asks again until the answer is the one that was waited for: a request waits a minute at most, people wait longer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import Limited, ServerError, Unreachable
from holdfast.transport.cli.hold.renewal import clock

LONGEST_WAIT = 60.0
"""Seconds that one request may wait."""
PAUSE = 1.0
FOR_EVER = float("inf")

Answer = dict[str, Any]


def ask_patiently(
    client: Client, operation: str, arguments: dict[str, Any], wait: float, is_done: Callable[[Answer], bool]
) -> Answer:
    """The last answer: the one waited for, or what there was when the time was over.

    The first trouble is told at once. Later ones are waited out: whoever waits for long means it.
    """
    over = clock() + wait
    answered = False
    while True:
        left = max(over - clock(), 0.0)
        try:
            answer = client.call(operation, **arguments, wait_seconds=round(min(left, LONGEST_WAIT), 3))
        except (Limited, ServerError, Unreachable):
            if not answered or left <= PAUSE:
                raise
            time.sleep(PAUSE)
            continue
        answered = True
        if is_done(answer) or left <= LONGEST_WAIT:
            return answer


def is_granted(answer: Answer) -> bool:
    """Whether a claim of a job is ours."""
    return bool(answer["status"] != "held")
