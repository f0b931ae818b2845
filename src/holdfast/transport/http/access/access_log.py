"""The access log: caller, operation, status and duration of requests. By default only failed and slow ones."""

from __future__ import annotations

import logging

from holdfast.transport.http.request import Request

ALL, ERRORS, OFF = "all", "errors", "off"
CHOICES = (ALL, ERRORS, OFF)
SLOW_SECONDS = 1.0
"""A request that took longer, and did not wait on purpose, is logged like an error."""

log = logging.getLogger("holdfast.access")


def log_request(choice: str, request: Request, status: int, seconds: float) -> None:
    """Log a request if the setting requires it. The line contains ids and the route, never a body or a query."""
    bad = status >= 500 or (seconds > SLOW_SECONDS and not request.is_waiting)
    if choice == OFF or not (bad or choice == ALL):
        return
    operation = request.operation
    log.log(
        logging.WARNING if bad else logging.INFO,
        "%s %s",
        request.scope["method"],
        _route(request) if operation is None else operation.path,
        extra={
            "request_id": request.request_id,
            "account": None if request.principal is None else request.principal.account,
            "subject": request.parameter or None,
            "operation": None if operation is None else operation.name,
            "status": status,
            "duration_seconds": round(seconds, 6),
        },
    )


def _route(request: Request) -> str:
    """`/ui` for every page of the dashboard, because the path of a sign-in link is a secret."""
    path: str = request.scope["path"]
    return "/ui" if path in {"/", "/ui"} or path.startswith("/ui/") else "no route"
