"""The access log: who asked for what, how it was answered and how long that took. By default only what went badly."""

from __future__ import annotations

import logging

from holdfast.transport.http.request import Request

ALL, ERRORS, OFF = "all", "errors", "off"
CHOICES = (ALL, ERRORS, OFF)
SLOW_SECONDS = 1.0
"""An answer that took longer, and was not asked to wait, is told like an error."""

log = logging.getLogger("holdfast.access")


def tell(choice: str, request: Request, status: int, seconds: float) -> None:
    """Write a line, if this is one that is asked for. It names nothing but ids and where it went; no body, no query."""
    bad = status >= 500 or (seconds > SLOW_SECONDS and not request.patient)  # noqa: PLR2004 - ours, not the caller's
    if choice == OFF or not (bad or choice == ALL):
        return
    operation = request.operation
    log.log(
        logging.WARNING if bad else logging.INFO,
        "%s %s",
        request.scope["method"],
        "nowhere" if operation is None else operation.path,
        extra={
            "request_id": request.request_id,
            "account": None if request.principal is None else request.principal.account,
            "subject": request.parameter or None,
            "operation": None if operation is None else operation.name,
            "status": status,
            "duration_seconds": round(seconds, 6),
        },
    )
