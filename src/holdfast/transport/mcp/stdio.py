"""MCP over stdin and stdout, for a host that starts us as its child. Nothing but the protocol goes to stdout."""

from __future__ import annotations

import asyncio
import secrets

from mcp.server.stdio import stdio_server
from msgspec.structs import replace

from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.mcp.in_process import Caller, InProcess
from holdfast.transport.mcp.remote import Remote
from holdfast.transport.mcp.server import Desk, make_server


def speak_for(url: str, key: str) -> None:
    """Speak for a server elsewhere until stdin ends."""
    asyncio.run(_for_server(url, key))


def speak_embedded(engine: Engine, settings: Settings) -> None:
    """Speak for an engine in this process: the same handlers, no sockets."""
    asyncio.run(_embedded(engine, settings))


async def _for_server(url: str, key: str) -> None:
    remote = Remote(url, key)
    try:
        await _speak(remote)
    finally:
        await remote.close()


async def _embedded(engine: Engine, settings: Settings) -> None:
    # Whoever can start this process can open the file: the key is for the door's sake and known to nobody else.
    key = secrets.token_hex()
    ctx = HandlerContext(engine, replace(settings, admin_key=key))
    ctx.open()
    try:
        await _speak(InProcess(App(ctx), [(b"x-admin-key", key.encode())]))
    finally:
        engine.drain()
        ctx.close()


async def _speak(caller: Caller) -> None:
    server = make_server(Desk(lambda _: caller))
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
