"""The handler of each operation, and the module that renders the errors of each API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType

from holdfast.core.errors import Overloaded
from holdfast.operations.operation import HOLDFAST_API, OCTOSTORE, ORCHESTRION
from holdfast.operations.table import OPERATIONS
from holdfast.transport.http.api import (
    accounts,
    billing,
    deliveries,
    events,
    export,
    heartbeats,
    job_list,
    jobs,
    keys,
    offers,
    questions,
    queues,
    sessions,
    webhooks,
)
from holdfast.transport.http.api import errors as api_errors
from holdfast.transport.http.api.holdings import mine
from holdfast.transport.http.api.reservations import reads as reservation_reads
from holdfast.transport.http.api.reservations import verbs as reservation_verbs
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore import admin, elections, lock_list, locks, users, watches
from holdfast.transport.http.octostore import errors as octostore_errors
from holdfast.transport.http.octostore import sessions as octostore_sessions
from holdfast.transport.http.octostore import webhooks as octostore_webhooks
from holdfast.transport.http.orchestrion import asking, batch, claims, dependencies, lists, task_verbs, tasks
from holdfast.transport.http.orchestrion import errors as orchestrion_errors
from holdfast.transport.http.request import Request, Response
from holdfast.transport.http.system import discovery, docs, health, metrics
from holdfast.transport.mcp.endpoint import PATH as MCP_PATH

Handler = Callable[[HandlerContext, Request], Awaitable[Response]]

_MODULES: tuple[ModuleType, ...] = (
    *(jobs, job_list, reservation_verbs, reservation_reads, offers, heartbeats, sessions, mine),
    *(events, webhooks, deliveries, keys, accounts, billing, export, queues),
    *(tasks, claims, lists, task_verbs, batch, dependencies, asking, questions),
    *(locks, lock_list, octostore_sessions, elections, octostore_webhooks, users, watches, admin),
    *(health, metrics, discovery, docs),
)
"""Every module with handlers: the Holdfast API, Orchestrion's, OctoStore's, and the server itself."""
_ERRORS: dict[str, ModuleType] = {
    HOLDFAST_API: api_errors,
    ORCHESTRION: orchestrion_errors,
    OCTOSTORE: octostore_errors,
}
_OVERLOADED: dict[ModuleType, Response] = {}
_REQUEST_ID = b"{request_id}"
"""Stands for the request id in a rendered refusal."""
_HOLDFAST_PATHS = (
    "/v1/jobs",
    "/v1/reservations",
    "/v1/heartbeats",
    "/v1/sessions",
    "/v1/mine",
    "/v1/questions",
    "/v1/webhooks",
    "/v1/queues",
    "/v1/events",
    "/v1/account",
    "/v1/recover",
    MCP_PATH,
)


def find_handler(operation: str) -> Handler:
    """The function with the operation's name, in one of the handler modules."""
    found = [getattr(module, operation) for module in _MODULES if hasattr(module, operation)]
    assert len(found) == 1, f"operation {operation} needs one handler, has {len(found)}"
    handler: Handler = found[0]
    return handler


HANDLERS = {operation.name: find_handler(operation.name) for operation in OPERATIONS}


def render_error(request: Request, error: Exception) -> Response:
    """An error in the form of the API that was called: by the operation, or by the path if there is none."""
    response: Response = _error_module(request).render_error(request, error)
    return response


def render_overloaded(request: Request) -> Response:
    """The refusal of an overloaded server. All but the request id is rendered once, so that it costs little."""
    module = _error_module(request)
    rendered = _OVERLOADED.get(module)
    if rendered is None:
        rendered = _OVERLOADED[module] = render_error(request, Overloaded("too many requests are in progress"))
        rendered.body = rendered.body.replace(request.request_id.encode(), _REQUEST_ID)
    body = rendered.body.replace(_REQUEST_ID, request.request_id.encode())
    return Response(rendered.status, body, rendered.headers, rendered.content_type)


def _error_module(request: Request) -> ModuleType:
    if request.operation is not None:
        return _ERRORS[request.operation.error_family]
    path = request.scope["path"]
    if path.startswith(_HOLDFAST_PATHS):
        return api_errors
    return orchestrion_errors if path.startswith("/v1/") else octostore_errors
