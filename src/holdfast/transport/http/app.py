"""The ASGI application: find the operation, let its handler answer, give every answer its common head."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import HoldfastError
from holdfast.operations.table import HOLDFAST_API, OCTOSTORE, OPERATIONS, ORCHESTRION, SYSTEM
from holdfast.telemetry.metric_names import REASONS, REFUSED
from holdfast.telemetry.traces import Traces
from holdfast.transport.http import tracing
from holdfast.transport.http.access.access_log import ALL, SLOW_SECONDS, tell
from holdfast.transport.http.api import (
    accounts,
    billing,
    dashboard_links,
    deliveries,
    events,
    export,
    jobs,
    keys,
    sessions,
    webhooks,
)
from holdfast.transport.http.api import errors as api_errors
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore import admin, elections, locks, users, watches
from holdfast.transport.http.octostore import errors as octostore_errors
from holdfast.transport.http.octostore import sessions as octostore_sessions
from holdfast.transport.http.octostore import webhooks as octostore_webhooks
from holdfast.transport.http.orchestrion import batch, lists, task_verbs, tasks
from holdfast.transport.http.orchestrion import errors as orchestrion_errors
from holdfast.transport.http.request import Header, HttpRefusal, Receive, Request, Response, Scope, Send
from holdfast.transport.http.routing import Router
from holdfast.transport.http.streams.sending import send_parts
from holdfast.transport.http.system import discovery, docs, health, metrics
from holdfast.transport.mcp.endpoint import PATH as MCP_PATH
from holdfast.transport.mcp.endpoint import Endpoint

if TYPE_CHECKING:
    from holdfast.transport.dashboard.app import Dashboard

Handler = Callable[[HandlerContext, Request], Awaitable[Response]]

log = logging.getLogger("holdfast.http")

_HANDLERS: tuple[ModuleType, ...] = (
    *(jobs, sessions, events, webhooks, deliveries, keys, accounts, dashboard_links, billing, export),
    *(tasks, lists, task_verbs, batch),
    *(locks, octostore_sessions, elections, octostore_webhooks, users, watches, admin),
    *(health, metrics, discovery, docs),
)
"""Every module with request handlers: our own API, Orchestrion's, OctoStore's, and the server itself."""
_ERRORS: dict[str, ModuleType] = {
    HOLDFAST_API: api_errors,
    ORCHESTRION: orchestrion_errors,
    OCTOSTORE: octostore_errors,
    SYSTEM: octostore_errors,
}
"""The module that renders the errors of each family."""
_FREE_OF_CHARGE = {402, 429}
_TURNED_AWAY = {429, 503, 507}
_REPLAYED = (b"idempotency-replayed", b"true")
_VARY = (b"vary", b"origin, access-control-request-method, access-control-request-headers")
_EXPOSE = (b"access-control-expose-headers", b"retry-after,x-request-id")
_HOUSE_PATHS = ("/v1/jobs", "/v1/sessions", "/v1/webhooks", "/v1/events", "/v1/account", "/v1/recover", MCP_PATH)
_PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"GET,POST,PUT,DELETE"),
    (b"access-control-allow-headers", b"authorization,content-type,x-admin-key,x-octostore-admin-key"),
    (b"access-control-max-age", b"600"),
)


def handler_of(name: str) -> Handler:
    """The function that answers an operation: it bears the operation's name."""
    found = [getattr(module, name) for module in _HANDLERS if hasattr(module, name)]
    assert len(found) == 1, f"operation {name} needs one handler, has {len(found)}"
    handler: Handler = found[0]
    return handler


def _errors_of(request: Request) -> ModuleType:
    """The module that renders errors of this request: by its operation, or by its path if no operation matched."""
    if request.operation is not None:
        return _ERRORS[request.operation.family]
    path = request.scope["path"]
    if path.startswith(_HOUSE_PATHS):
        return api_errors
    return orchestrion_errors if path.startswith("/v1/") else octostore_errors


def is_for_people(request: Request) -> bool:
    """Whether the dashboard answers: below `/ui`, and at `/` for a browser that wants to see a page."""
    path: str = request.scope["path"]
    if path == "/":
        return request.scope["method"] in {"GET", "HEAD"} and b"text/html" in request.headers.get(b"accept", b"")
    return path == "/ui" or path.startswith("/ui/")


def _open_dashboard(ctx: HandlerContext) -> Dashboard:
    from holdfast.transport.dashboard.app import Dashboard  # noqa: PLC0415 - templates take a while to load

    return Dashboard(ctx)


class App:
    """One door over one engine."""

    def __init__(self, ctx: HandlerContext) -> None:
        self._door = ctx
        self._router = Router()
        self._handlers = {operation.name: handler_of(operation.name) for operation in OPERATIONS}
        self._mcp = Endpoint(self, ctx)
        self._access = ctx.settings.access_log
        self._dashboard: asyncio.Task[Dashboard] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            return
        began = self._door.stats.begin()
        request = Request(scope, receive)
        if self._door.traces is not None:
            await self._traced(self._door.traces, request, began, send)
            return
        await self._handle(request, began, send)

    async def _traced(self, traces: Traces, request: Request, began: float, send: Send) -> None:
        """The same within a span, which ends with the answer's head or with whatever went wrong."""
        span, status = tracing.begin(traces, request), 500

        async def pass_on(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._handle(request, began, pass_on)
        finally:
            tracing.end(span, request, status)

    async def _handle(self, request: Request, began: float, send: Send) -> None:
        scope = request.scope
        try:
            if scope["path"] == MCP_PATH and scope["method"] != "OPTIONS":
                await self._mcp.admit(request)
                await self._converse(request, began, send)
                return
            response = await (self._show(request) if is_for_people(request) else self._answer(request))
        except Exception as error:  # noqa: BLE001 - whatever happened, the caller gets an answer
            response = self._refuse(request, error)
        if request.purse is not None:
            _settle(request, response)
        seconds = self._door.stats.note(request.operation, scope["path"], response.status, began)
        if response.status >= 500 or seconds > SLOW_SECONDS or self._access == ALL:  # noqa: PLR2004 - most are none
            tell(self._access, request, response.status, seconds)
        await _send(request, response, send)

    async def _answer(self, request: Request) -> Response:
        if request.scope["method"] == "OPTIONS":
            return Response(200, b"", _PREFLIGHT, b"")
        operation, parameter = self._router.find(request.scope["method"], request.scope["raw_path"])
        request.route(operation, parameter)
        self._door.network.check_way(request)
        return await self._handlers[operation.name](self._door, request)

    async def _show(self, request: Request) -> Response:
        """A page of the dashboard, which is opened when somebody first looks, beside whatever else goes on."""
        if self._dashboard is None:
            self._dashboard = asyncio.ensure_future(asyncio.to_thread(_open_dashboard, self._door))
        return await (await asyncio.shield(self._dashboard)).answer(request)

    async def _converse(self, request: Request, began: float, send: Send) -> None:
        """`/mcp` sends its answer itself, perhaps in parts; it gets the common head and is counted like any other."""
        started = False

        async def pass_on(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                seconds = self._door.stats.note(request.operation, request.scope["path"], message["status"], began)
                request.patient = True  # a tool may wait, and a stream may stay
                tell(self._access, request, message["status"], seconds)
                message["headers"] = [*message["headers"], *_common_head(request)]
            await send(message)

        try:
            await self._mcp.answer(request, pass_on)
        except Exception:
            if not started:
                raise
            log.exception("a request failed halfway", extra={"request_id": request.request_id})

    def _refuse(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HoldfastError):
            log.error("a request failed", extra={"request_id": request.request_id}, exc_info=error)
        response: Response = _errors_of(request).render_error(request, error)
        if response.status in _TURNED_AWAY:
            reason = getattr(error, "code", "")
            self._door.engine.board.add(REFUSED, reason if reason in REASONS else "other")
        if isinstance(error, HttpRefusal) and error.close:
            response.headers += ((b"connection", b"close"),)
        return response

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._door.open()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self._mcp.close()
                await self._door.hang_up()
                self._door.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _settle(request: Request, response: Response) -> None:
    """Tell the caller what is left; what a plan refuses, a fault of ours and a repetition cost nothing."""
    assert request.purse is not None
    if response.status in _FREE_OF_CHARGE or response.status >= 500 or _REPLAYED in response.headers:  # noqa: PLR2004
        request.give_back()
    response.headers += request.purse.headers()


def _common_head(request: Request) -> tuple[Header, Header]:
    return (b"x-request-id", request.request_id.encode()), _VARY


async def _send(request: Request, response: Response, send: Send) -> None:
    body = response.body
    headers: list[Header] = [*_common_head(request), *response.headers]
    if request.scope["method"] != "OPTIONS":
        headers.append(_EXPOSE)
    if response.status not in {204, 304}:  # no content, no length
        if response.parts is None:
            headers.append((b"content-length", str(len(body)).encode()))
        if response.content_type and (body or response.parts is not None):
            headers.append((b"content-type", response.content_type))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if response.parts is not None:
        await send_parts(request, response.parts, send)
        return
    await send({"type": "http.response.body", "body": b"" if request.scope["method"] == "HEAD" else body})
