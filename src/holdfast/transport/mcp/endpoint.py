"""`/mcp`: who may speak, and to whom they speak. What is said is the SDK's business.

The SDK takes a second to import, so that happens when somebody first asks, and in a thread of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast import extras
from holdfast.core.errors import Forbidden
from holdfast.operations.bounds import BODY_BYTES
from holdfast.operations.table import HOLDFAST_API, Operation
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Header, HttpRefusal, Request, Send
from holdfast.transport.mcp.in_process import App, Caller, InProcess
from holdfast.transport.origins import own_origins

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from holdfast.transport.mcp.server import Reach

    Make = Callable[[Reach], StreamableHTTPSessionManager]

PATH = "/mcp"
MCP = Operation("mcp", "POST", PATH, HOLDFAST_API, "The Model Context Protocol.", scope="any")
"""Not in the table: it is a protocol of its own, which OpenAPI cannot tell."""

BODY_LIMIT = 2 * BODY_BYTES
_ALONG = {
    b"authorization",
    b"x-admin-key",
    b"x-octostore-admin-key",
    b"x-forwarded-for",
    b"x-forwarded-proto",
    b"cf-connecting-ip",
}
"""What of a request holds for the tool calls in it: who asks, and from where."""


class Endpoint:
    """Streamable HTTP without sessions: every request stands alone, in either era of the protocol."""

    def __init__(self, app: App, ctx: HandlerContext, make: Make | None = None) -> None:
        self._app = app
        self._door = ctx
        self._make = make or _speaking
        self._origins = own_origins(ctx.settings)
        self._is_installed = extras.is_installed(extras.MCP)
        self._opening: asyncio.Task[StreamableHTTPSessionManager] | None = None
        self._running: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    async def admit(self, request: Request) -> None:
        """Refuse whoever may not speak here, before a word is read."""
        request.route(MCP, "")
        self._door.network.check_transport(request)
        origin = request.headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() not in self._origins:
            raise Forbidden("pages from this Origin may not speak to this server")
        await self._door.authenticate(request)
        if request.scope["method"] != "POST":
            raise HttpRefusal(405, "this path answers POST", headers=((b"allow", b"POST"),))
        if not self._is_installed:
            raise HttpRefusal(
                501, f"this server runs without MCP: {extras.install_command(extras.MCP)}, then restart it"
            )

    async def answer(self, request: Request, send: Send) -> None:
        """Let the SDK answer; tool calls come back to the application as requests of their own."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        manager = await asyncio.shield(self._opening)
        # The SDK compares headers with the message, and spaces around a value are no part of it.
        headers = [(name, value.strip(b" \t")) for name, value in request.scope["headers"]]
        scope = {
            **request.scope,
            "headers": headers,
            "state": {"request_id": request.request_id, "traceparent": request.traceparent},
        }
        await manager.handle_request(scope, request.receive, send)

    async def close(self) -> None:
        """Stop listening."""
        self._over.set()
        if self._running is not None:
            await self._running

    async def _open(self) -> StreamableHTTPSessionManager:
        manager = await asyncio.get_running_loop().run_in_executor(None, self._make, self._reach)
        ready = asyncio.Event()
        self._running = asyncio.ensure_future(self._run(manager, ready))
        await ready.wait()
        return manager

    async def _run(self, manager: StreamableHTTPSessionManager, ready: asyncio.Event) -> None:
        """The manager's tasks must be begun and ended by one task of ours."""
        async with manager.run():
            ready.set()
            await self._over.wait()

    def _reach(self, context: Any) -> Caller:
        """A caller with the key and the address of whoever sent this request."""
        outer = context.request
        headers: list[Header] = [header for header in outer.scope["headers"] if header[0] in _ALONG]
        headers.append((b"x-request-id", outer.scope["state"]["request_id"].encode()))
        if outer.scope["state"]["traceparent"]:
            headers.append((b"traceparent", outer.scope["state"]["traceparent"].encode()))
        return InProcess(self._app, headers, outer.scope)


def _speaking(reach: Reach) -> StreamableHTTPSessionManager:
    """The SDK's manager over our own tools."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415 - late on purpose

    from holdfast.transport.mcp.server import Desk, make_server  # noqa: PLC0415 - the same

    # Origins are checked above, in our own words; hosts are not, for a proxy may have any name.
    return StreamableHTTPSessionManager(make_server(Desk(reach)), stateless=True, max_request_body_size=BODY_LIMIT)
