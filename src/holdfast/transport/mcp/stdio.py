"""MCP over stdin and stdout, for a host that starts us as a child process. Only protocol messages go to stdout."""

from __future__ import annotations

import asyncio
import secrets

from mcp.server.stdio import stdio_server
from msgspec.structs import replace

from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.space import find_space
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.mcp.in_process import InProcessSender, Sender
from holdfast.transport.mcp.remote import RemoteSender
from holdfast.transport.mcp.server import McpHandlers, make_server


def serve_remote(url: str, key: str) -> None:
    """Serve MCP until stdin ends, with the tools calling a server over HTTP."""
    asyncio.run(_serve_remote(url, key))


def serve_embedded(engine: Engine, settings: Settings) -> None:
    """Serve MCP until stdin ends, with the tools calling an engine in this process."""
    asyncio.run(_serve_embedded(engine, settings))


async def _serve_remote(url: str, key: str) -> None:
    remote = RemoteSender(url, key)
    try:
        await _serve(remote)
    finally:
        await remote.close()


async def _serve_embedded(engine: Engine, settings: Settings) -> None:
    # The user who starts this process can read the database file anyway: the key only satisfies authentication.
    key = secrets.token_hex()
    ctx = HandlerContext(engine, replace(settings, admin_key=key))
    ctx.open()
    try:
        await _serve(InProcessSender(App(ctx), [(b"x-admin-key", key.encode())]))
    finally:
        engine.drain()
        ctx.close()


async def _serve(sender: Sender) -> None:
    server = make_server(McpHandlers(lambda _: sender, find_space))
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
