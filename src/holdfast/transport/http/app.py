"""The ASGI application: finds the operation, calls its handler, and adds the headers that all responses share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import HoldfastError, Overloaded
from holdfast.telemetry.metric_names import REASONS, REFUSED
from holdfast.telemetry.traces import Traces
from holdfast.transport.http import tracing
from holdfast.transport.http.access.access_log import ALL, SLOW_SECONDS, log_request
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.cors import EXPOSE, VARY, AllowedOrigins, preflight
from holdfast.transport.http.handlers import HANDLERS, render_error, render_overloaded
from holdfast.transport.http.overload.request_limiter import RequestLimiter
from holdfast.transport.http.overload.unread_answers import COUNTED_BYTES
from holdfast.transport.http.request import (
    SEND_WHOLE,
    Header,
    HttpRefusal,
    Receive,
    Request,
    Response,
    Scope,
    Send,
)
from holdfast.transport.http.routing import Router
from holdfast.transport.http.streams.sending import send_parts
from holdfast.transport.mcp.endpoint import PATH as MCP_PATH
from holdfast.transport.mcp.endpoint import Endpoint

if TYPE_CHECKING:
    from holdfast.transport.dashboard.app import Dashboard

log = logging.getLogger("holdfast.http")

_NOT_CHARGED = {402, 429}
_REFUSED_FOR_LOAD = {429, 503, 507}
"""Statuses that are counted as refusals in the metrics."""
_REPLAYED = (b"idempotency-replayed", b"true")
_NO_SNIFFING = (b"x-content-type-options", b"nosniff")
_HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")
"""Sent over https: for a year browsers use nothing else for this host."""
_JSON = b"application/json"


def _lines(*headers: Header) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)


_FIXED = _lines(VARY, _NO_SNIFFING, EXPOSE, (b"content-type", _JSON))
"""The headers of the usual answer that are always the same."""
_FIXED_ENCRYPTED = _FIXED + _lines(_HTTPS_ONLY)


class App:
    """The HTTP API, `/mcp` and the dashboard, over one engine."""

    def __init__(self, ctx: HandlerContext) -> None:
        self._ctx = ctx
        self._router = Router()
        self.request_limiter = RequestLimiter(self._router, ctx.access.known_account, MCP_PATH)
        self._mcp = Endpoint(self, ctx)
        self._access_log = ctx.settings.access_log
        self._allowed_origins = AllowedOrigins(ctx.settings.allowed_origins)
        self._dashboard: asyncio.Task[Dashboard] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        began = self._ctx.stats.begin()
        request = Request(scope, receive)
        if not self.request_limiter.enter(request):
            await self._refuse_early(request, began, send)
            return
        request.body_budget = self._ctx.body_budget
        try:
            if self._ctx.traces is not None:
                await self._handle_traced(self._ctx.traces, request, began, send)
            else:
                await self._handle(request, began, send)
        finally:
            request.leave_place()
            request.forget_body()

    async def refuse(self, scope: Scope, receive: Receive, send: Send, error: HoldfastError) -> None:
        """Answer a request with an error, without its handler."""
        began, request = self._ctx.stats.begin(), Request(scope, receive)
        with suppress(HttpRefusal):
            request.route(*self._router.find(scope["method"], scope["raw_path"]))
        response = self._refuse(request, error)
        self._ctx.stats.note(request.operation, scope["path"], response.status, began)
        await self._send(request, response, send)

    async def _refuse_early(self, request: Request, began: float, send: Send) -> None:
        """Refuse a request that found no place. It is counted, but neither traced nor logged by itself."""
        await self.request_limiter.pace_refusal()
        self._ctx.engine.registry.add(REFUSED, Overloaded.code)
        self._ctx.stats.note(None, request.scope["path"], 503, began)
        await self._send(request, render_overloaded(request), send)

    async def _handle_traced(self, traces: Traces, request: Request, began: float, send: Send) -> None:
        """Handle a request within a span, which ends when the request does."""
        span, status = tracing.begin(traces, request), 500
        request.scope.pop(SEND_WHOLE, None)  # the span's status is read from the messages

        async def send_and_note_status(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._handle(request, began, send_and_note_status)
        finally:
            tracing.end(span, request, status)

    async def _handle(self, request: Request, began: float, send: Send) -> None:
        scope, is_overloaded = request.scope, False
        try:
            if request.repeated_credential is not None:
                self._refuse_credentials(request)
            if scope["path"] == MCP_PATH and scope["method"] != "OPTIONS":
                await self._mcp.admit(request)
                request.leave_place()  # each tool call takes a place of its own
                await self._answer_mcp(request, began, send)
                return
            response = await (self._show_dashboard(request) if is_for_dashboard(request) else self._answer(request))
            if len(response.body) > COUNTED_BYTES:
                self._ctx.unread_answers.check(request, len(response.body))
        except Overloaded as error:
            await self.request_limiter.pace_refusal()
            response, is_overloaded = self._refuse(request, error), True
        except Exception as error:  # noqa: BLE001 - every failure is answered
            response = self._refuse(request, error)
        if request.rate_budget is not None:
            _add_rate_limit(request, response)
        seconds = self._ctx.stats.note(request.operation, scope["path"], response.status, began)
        is_bad = response.status >= 500 or seconds > SLOW_SECONDS
        if (is_bad and not is_overloaded) or self._access_log == ALL:
            log_request(self._access_log, request, response.status, seconds)
        request.leave_place()
        request.forget_body()
        await self._send(request, response, send)

    async def _answer(self, request: Request) -> Response:
        if request.scope["method"] == "OPTIONS":
            return preflight(self._router.allow(request.scope["raw_path"]))
        operation, parameter = self._router.find(request.scope["method"], request.scope["raw_path"])
        request.route(operation, parameter)
        self._ctx.network.check_transport(request)
        return await HANDLERS[operation.name](self._ctx, request)

    async def _show_dashboard(self, request: Request) -> Response:
        """A page of the dashboard, which is loaded in a thread at its first use."""
        if self._dashboard is None:
            self._dashboard = asyncio.ensure_future(asyncio.to_thread(_open_dashboard, self._ctx))
        return await (await asyncio.shield(self._dashboard)).answer(request)

    async def _answer_mcp(self, request: Request, began: float, send: Send) -> None:
        """Let `/mcp` answer, in one or several parts; add the common headers, and count and log the request."""
        started = False

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                seconds = self._ctx.stats.note(request.operation, request.scope["path"], message["status"], began)
                request.is_waiting = True  # a tool may wait, and a stream stays open
                log_request(self._access_log, request, message["status"], seconds)
                message["headers"] = [*message["headers"], *self._common_headers(request)]
            await self._ctx.unread_answers.send(request, message, send)

        try:
            await self._mcp.answer(request, send_with_headers)
        except Exception:
            if not started:
                raise
            log.exception("a request failed after its response had begun", extra={"request_id": request.request_id})

    def _refuse_credentials(self, request: Request) -> None:
        """Refuse a request with two credentials of a kind: a proxy and this server could each read another one."""
        with suppress(HttpRefusal):
            request.route(*self._router.find(request.scope["method"], request.scope["raw_path"]))
        raise HttpRefusal(400, f"the header {request.repeated_credential} is sent twice")

    def _refuse(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HoldfastError):
            log.error("a request failed", extra={"request_id": request.request_id}, exc_info=error)
        request.can_register = self._ctx.settings.is_registration_open
        response = render_error(request, error)
        if response.status in _REFUSED_FOR_LOAD:
            reason = getattr(error, "code", "")
            self._ctx.engine.registry.add(REFUSED, reason if reason in REASONS else "other")
        if request.must_close or (isinstance(error, HttpRefusal) and error.close):
            response.headers += ((b"connection", b"close"),)
        return response

    def _common_headers(self, request: Request) -> tuple[Header, ...]:
        common = (
            (b"x-request-id", request.request_id.encode()),
            VARY,
            _NO_SNIFFING,
            *self._allowed_origins.headers(request),
        )
        return (*common, _HTTPS_ONLY) if self._ctx.network.is_encrypted(request) else common

    def _send_whole(self, request: Request, response: Response) -> bool:
        """Send the usual answer in one step: a JSON document without headers of its own. False for any other."""
        send_whole = request.scope.pop(SEND_WHOLE, None)  # it refers to the scope: nothing else would free the request
        if send_whole is None or response.headers or response.content_type != _JSON:
            return False
        if not 0 < len(response.body) <= COUNTED_BYTES or request.scope["method"] not in {"GET", "POST"}:
            return False
        fixed = _FIXED_ENCRYPTED if self._ctx.network.is_encrypted(request) else _FIXED
        fields = b"x-request-id: %b\r\n%b%bcontent-length: %d\r\n" % (
            request.request_id.encode(),
            fixed,
            _lines(*self._allowed_origins.headers(request)),
            len(response.body),
        )
        sent: bool = send_whole(response.status, fields, response.body)
        return sent

    async def _send(self, request: Request, response: Response, send: Send) -> None:
        if self._send_whole(request, response):
            return
        body = response.body
        headers: list[Header] = [*self._common_headers(request), *response.headers]
        if request.scope["method"] != "OPTIONS":
            headers.append(EXPOSE)
        if response.status not in {204, 304}:  # these have no body
            if response.parts is None:
                headers.append((b"content-length", str(len(body)).encode()))
            elif request.scope.get("http_version") == "1.0":
                headers.append((b"connection", b"close"))  # its end is the only end of the body that 1.0 knows
            if response.content_type and (body or response.parts is not None):
                headers.append((b"content-type", response.content_type))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if response.parts is not None:
            await send_parts(request, response.parts, send)
            return
        message = {"type": "http.response.body", "body": b"" if request.scope["method"] == "HEAD" else body}
        if len(body) <= COUNTED_BYTES:
            await send(message)
        else:
            await self._ctx.unread_answers.send(request, message, send)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        watch: asyncio.Task[None] | None = None
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._ctx.open()
                in_batches = self._ctx.engine.lanes.seconds_on_callers
                watch = asyncio.ensure_future(self.request_limiter.watch_event_loop(in_batches))
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                if watch is not None:
                    watch.cancel()
                await self._mcp.close()
                await self._ctx.close_payments()
                self._ctx.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


def is_for_dashboard(request: Request) -> bool:
    """Whether the dashboard answers: below `/ui`, and at `/` for a browser that accepts HTML."""
    path: str = request.scope["path"]
    if path == "/":
        return request.scope["method"] in {"GET", "HEAD"} and b"text/html" in request.headers.get(b"accept", b"")
    return path == "/ui" or path.startswith("/ui/")


def _open_dashboard(ctx: HandlerContext) -> Dashboard:
    from holdfast.transport.dashboard.app import Dashboard

    return Dashboard(ctx)


def _add_rate_limit(request: Request, response: Response) -> None:
    """Add the RateLimit headers; a refusal by the plan, a server error and a replay are not charged."""
    assert request.rate_budget is not None
    if response.status in _NOT_CHARGED or response.status >= 500 or _REPLAYED in response.headers:
        request.refund()
    response.headers += request.rate_budget.headers()
