"""`/mcp`: authentication and Origin check of MCP over HTTP; the SDK handles the protocol.

The SDK takes a second to import, so it is imported in a thread on the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from holdfast import extras
from holdfast.core.errors import Forbidden
from holdfast.operations.bounds import BODY_BYTES
from holdfast.operations.operation import HOLDFAST_API, Operation
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Header, HttpRefusal, Request, Scope, Send
from holdfast.transport.mcp.in_process import App, InProcessSender, Sender
from holdfast.transport.mcp.operator_tools import DEFAULT, tool_set
from holdfast.transport.origins import own_origins

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from holdfast.transport.mcp.server import SenderFactory

    Make = Callable[[SenderFactory, str], StreamableHTTPSessionManager]

PATH = "/mcp"
MCP = Operation("mcp", "POST", PATH, HOLDFAST_API, "The Model Context Protocol.", scope="any")
"""Not in the table of operations: OpenAPI cannot describe this protocol."""

BODY_LIMIT = 2 * BODY_BYTES
_FORWARDED_HEADERS = {
    b"authorization",
    b"x-admin-key",
    b"x-octostore-admin-key",
    b"x-forwarded-for",
    b"x-forwarded-proto",
    b"cf-connecting-ip",
}
"""Headers passed on to the tool calls of a request: credentials and client address."""


class Endpoint:
    """Streamable HTTP without sessions: each request is independent, in both versions of the protocol."""

    def __init__(self, app: App, ctx: HandlerContext, make: Make | None = None) -> None:
        self._app = app
        self._ctx = ctx
        self._make = make or _make_manager
        self._origins = own_origins(ctx.settings) | set(ctx.settings.allowed_origins)
        self._is_installed = extras.is_installed(extras.MCP)
        self._manager: asyncio.Task[StreamableHTTPSessionManager] | None = None
        self._running: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()

    async def admit(self, request: Request) -> None:
        """Check transport, Origin, key and method before the body is read."""
        request.route(MCP, "")
        self._ctx.network.check_transport(request)
        origin = request.headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() not in self._origins:
            raise Forbidden("web pages from this Origin may not use this server")
        await self._ctx.authenticate(request)
        tool_set(_asked_set(request.scope))  # an unknown one is refused
        if request.scope["method"] != "POST":
            raise HttpRefusal(405, "this path accepts POST", headers=((b"allow", b"POST"),))
        if not self._is_installed:
            raise HttpRefusal(
                501, f"this server runs without MCP: {extras.install_command(extras.MCP)}, then restart it"
            )

    async def answer(self, request: Request, send: Send) -> None:
        """Let the SDK answer; each tool call becomes a request to the application."""
        if self._manager is None:
            self._manager = asyncio.ensure_future(self._start())
        manager = await asyncio.shield(self._manager)
        # The SDK compares headers with the message literally; surrounding spaces are not part of a value.
        headers = [(name, value.strip(b" \t")) for name, value in request.scope["headers"]]
        scope = {
            **request.scope,
            "headers": headers,
            "state": {"request_id": request.request_id, "traceparent": request.traceparent},
        }
        await manager.handle_request(scope, request.receive, send)

    async def close(self) -> None:
        """Stop the SDK's manager."""
        self._stopped.set()
        if self._running is not None:
            await self._running

    async def _start(self) -> StreamableHTTPSessionManager:
        manager = await asyncio.get_running_loop().run_in_executor(
            None, self._make, self._sender_for, f"the server at {self._ctx.settings.home}"
        )
        ready = asyncio.Event()
        self._running = asyncio.ensure_future(self._run(manager, ready))
        await ready.wait()
        return manager

    async def _run(self, manager: StreamableHTTPSessionManager, ready: asyncio.Event) -> None:
        """Run the manager in one task: its task group must be entered and left by the same task."""
        async with manager.run():
            ready.set()
            await self._stopped.wait()

    def _sender_for(self, context: Any) -> Sender:
        """A sender with the credentials and the client address of this request."""
        outer = context.request
        headers: list[Header] = [header for header in outer.scope["headers"] if header[0] in _FORWARDED_HEADERS]
        headers.append((b"x-request-id", outer.scope["state"]["request_id"].encode()))
        if outer.scope["state"]["traceparent"]:
            headers.append((b"traceparent", outer.scope["state"]["traceparent"].encode()))
        return InProcessSender(self._app, headers, outer.scope)


def _asked_set(scope: Scope) -> str:
    """The set of tools in the query of the address: `/mcp?tools=operator`."""
    query = dict(parse_qsl(str(scope["query_string"], "latin-1"), errors="replace"))
    return query.get("tools", DEFAULT)


def set_of(context: Any) -> str:
    """The set of tools that the request of a call asks for."""
    return _asked_set(context.request.scope)


def _make_manager(sender_for: SenderFactory, place: str) -> StreamableHTTPSessionManager:
    """The SDK's session manager with our handlers. Imports the SDK."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from holdfast.transport.mcp.server import McpHandlers, make_server

    # `admit` checks the Origin; the Host is not checked because a proxy may have any name.
    return StreamableHTTPSessionManager(
        make_server(McpHandlers(sender_for, set_of=set_of, place=place)),
        stateless=True,
        max_request_body_size=BODY_LIMIT,
    )
