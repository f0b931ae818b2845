"""MCP over stdin and stdout, for a host that starts us as a child process. Only protocol messages go to stdout."""

from __future__ import annotations

import asyncio
import logging
import secrets

import msgspec
from mcp.server.stdio import stdio_server
from msgspec.structs import replace

from holdfast.client.lease_memory import LeaseMemory
from holdfast.engine.engine import Engine
from holdfast.owner import default_owner
from holdfast.settings import Settings
from holdfast.space import find_space
from holdfast.transport.documents.mcp_skill import store_in_words
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.mcp.agent.process import AgentProcess
from holdfast.transport.mcp.in_process import InProcessSender, Sender
from holdfast.transport.mcp.remote import RemoteSender
from holdfast.transport.mcp.server import McpHandlers, make_server

log = logging.getLogger("holdfast.mcp")


class AgentTimes(msgspec.Struct, frozen=True):
    """How long the session of this process lasts without it, and when it stops renewing."""

    session_seconds: int
    idle_minutes: int


class Served(msgspec.Struct, frozen=True):
    """What the tools call: a server or a store."""

    name: str
    """Its name in the memory of the agent's leases."""
    place: str
    """Its name in texts."""
    tools: str
    """The set of tools."""


def serve_remote(url: str, key: str | None, times: AgentTimes, tools: str) -> None:
    """Serve MCP until stdin ends, with the tools of a set calling a server over HTTP."""
    asyncio.run(_serve_remote(url, key, times, tools))


def serve_embedded(engine: Engine, settings: Settings, store: str, times: AgentTimes, tools: str) -> None:
    """Serve MCP until stdin ends, with the tools of a set calling an engine in this process.

    `store` names it in the memory of the agent's leases.
    """
    asyncio.run(_serve_embedded(engine, settings, store, times, tools))


async def _serve_remote(url: str, key: str | None, times: AgentTimes, tools: str) -> None:
    remote = RemoteSender(url, key)
    try:
        served = Served(url.rstrip("/"), f"the server at {url}", tools)
        await _serve(remote, served, times)
    finally:
        await remote.close()


async def _serve_embedded(engine: Engine, settings: Settings, store: str, times: AgentTimes, tools: str) -> None:
    # The user who starts this process can read the database file anyway: the key only satisfies authentication.
    key = secrets.token_hex()
    ctx = HandlerContext(engine, replace(settings, admin_key=key))
    ctx.open()
    try:
        sender = InProcessSender(App(ctx), [(b"x-admin-key", key.encode())])
        await _serve(sender, Served(store, store_in_words(settings.store), tools), times)
    finally:
        engine.drain()
        ctx.close()


async def _serve(sender: Sender, served: Served, times: AgentTimes) -> None:
    """Serve as one agent. Its session outlives a clean end, too: a host that restarts resumes it."""
    memory = LeaseMemory.of_process(served.name, default_owner(), log.warning)
    agent = AgentProcess(sender, memory, times.session_seconds, times.idle_minutes * 60)
    handlers = McpHandlers(lambda _: agent, find_space, lambda _: served.tools, served.place, is_agent=True)
    server = make_server(handlers)
    renewing = asyncio.ensure_future(agent.keep_alive())
    try:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        renewing.cancel()
        memory.close()
