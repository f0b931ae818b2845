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
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.mcp.agent_process import AgentProcess
from holdfast.transport.mcp.in_process import InProcessSender, Sender
from holdfast.transport.mcp.remote import RemoteSender
from holdfast.transport.mcp.server import McpHandlers, make_server

log = logging.getLogger("holdfast.mcp")


class AgentTimes(msgspec.Struct, frozen=True):
    """How long the session of this process lasts without it, and when it stops renewing."""

    session_seconds: int
    idle_minutes: int


def serve_remote(url: str, key: str, times: AgentTimes) -> None:
    """Serve MCP until stdin ends, with the tools calling a server over HTTP."""
    asyncio.run(_serve_remote(url, key, times))


def serve_embedded(engine: Engine, settings: Settings, store: str, times: AgentTimes) -> None:
    """Serve MCP until stdin ends, with the tools calling an engine in this process; `store` names it for the agent."""
    asyncio.run(_serve_embedded(engine, settings, store, times))


async def _serve_remote(url: str, key: str, times: AgentTimes) -> None:
    remote = RemoteSender(url, key)
    try:
        await _serve(remote, url.rstrip("/"), times)
    finally:
        await remote.close()


async def _serve_embedded(engine: Engine, settings: Settings, store: str, times: AgentTimes) -> None:
    # The user who starts this process can read the database file anyway: the key only satisfies authentication.
    key = secrets.token_hex()
    ctx = HandlerContext(engine, replace(settings, admin_key=key))
    ctx.open()
    try:
        await _serve(InProcessSender(App(ctx), [(b"x-admin-key", key.encode())]), store, times)
    finally:
        engine.drain()
        ctx.close()


async def _serve(sender: Sender, server_name: str, times: AgentTimes) -> None:
    """Serve as one agent. Its session outlives a clean end, too: a host that restarts resumes it."""
    memory = LeaseMemory.of_process(server_name, default_owner(), log.warning)
    agent = AgentProcess(sender, memory, times.session_seconds, times.idle_minutes * 60)
    server = make_server(McpHandlers(lambda _: agent, find_space, is_agent=True))
    renewing = asyncio.ensure_future(agent.keep_alive())
    try:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        renewing.cancel()
        memory.close()
