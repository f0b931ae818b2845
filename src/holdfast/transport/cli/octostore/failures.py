"""What a failed request means for a holder: retry, give up, or proof that the lease is lost."""

from __future__ import annotations

import random

from holdfast.client.errors import HoldfastError

_KNOWN = {
    "authentication_required", "authentication_failed", "forbidden", "lock_limit_exceeded", "invalid_ttl",
    "invalid_lock_name", "invalid_input", "lease_not_current", "not_found", "session_expired", "conflict",
    "capacity_exceeded", "rate_limited", "upstream_unavailable", "internal_error",
}  # fmt: skip
_TRANSIENT = {
    "transport_error", "response_too_large", "invalid_response", "rate_limited", "capacity_exceeded",
    "upstream_unavailable", "internal_error",
}  # fmt: skip
_LOSS = {
    "lease_not_current", "not_found", "session_expired", "authentication_failed", "authentication_required",
    "forbidden", "session_identity_mismatch", "invalid_input", "invalid_ttl", "invalid_lock_name",
}  # fmt: skip
_SERVER_ERROR = 500
_LONGEST_RETRY_AFTER, _LONGEST_PAUSE, _FIRST_PAUSE, _SHORTEST = 300.0, 30.0, 0.5, 0.1
_DOUBLINGS = 5


def reason_of(error: HoldfastError) -> str:
    """The reason code to report: the server's if it is a known one, else the kind of failure."""
    if error.status is None:
        return error.code if error.code in _TRANSIENT else "transport_error"
    if error.code in _KNOWN:
        return error.code
    return "internal_error" if error.status >= _SERVER_ERROR else "request_failed"


def is_transient(error: HoldfastError) -> bool:
    """Whether the same request may succeed later."""
    return reason_of(error) in _TRANSIENT or (error.status or 0) >= _SERVER_ERROR


def proves_loss(reason: str) -> bool:
    return reason in _LOSS


def pause(retry_after: float | None, attempt: int) -> float:
    """Seconds until the next attempt, with jitter so that clients that failed together do not retry together."""
    if retry_after is not None:
        seconds = max(_SHORTEST, min(retry_after, _LONGEST_RETRY_AFTER))
    else:
        seconds = min(_FIRST_PAUSE * 2 ** min(attempt, _DOUBLINGS), _LONGEST_PAUSE)
    return seconds * random.uniform(1.0, 1.1)
