"""Backoff: how long a failed task waits before its next attempt. Randomness is an argument."""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.core.limits import MAX_DELAY
from holdfast.core.row import SECOND, Instant

MAX_DOUBLINGS = 32


class Backoff(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A task's retry policy: the delay after attempt n, in seconds."""

    kind: Literal["fixed", "linear", "exponential"]
    base_seconds: float = 1.0
    max_seconds: float = 3600.0
    jitter: float = 0.0
    """The random share of the delay: 0 is none of it, 1 is all of it."""


DEFAULT_JITTER = 0.25
"""The random share of a delay that the task did not choose, so that tasks that failed together are not retried so."""


def default_backoff(base_seconds: float, max_seconds: float) -> Backoff:
    """The policy of tasks that have none: doubling delays."""
    return Backoff("exponential", base_seconds, max(base_seconds, max_seconds), DEFAULT_JITTER)


def backoff_problem(backoff: Backoff) -> str | None:
    """What is wrong with a policy, or None."""
    if not 0 <= backoff.base_seconds <= MAX_DELAY:
        return f"`base_seconds` must be 0 to {MAX_DELAY}"
    if not 0 <= backoff.max_seconds <= MAX_DELAY:
        return f"`max_seconds` must be 0 to {MAX_DELAY}"
    if not 0 <= backoff.jitter <= 1:
        return "`jitter` must be 0 to 1"
    return None


def delay(backoff: Backoff, attempt: int, random_fraction: float) -> Instant:
    """How long to wait after attempt number `attempt` (from 1); `random_fraction` is from 0 to 1."""
    factor = {"fixed": 1, "linear": attempt, "exponential": 2 ** min(attempt - 1, MAX_DOUBLINGS)}[backoff.kind]
    whole = min(backoff.base_seconds * factor, backoff.max_seconds)
    return int(whole * (1 - backoff.jitter * random_fraction) * SECOND)
