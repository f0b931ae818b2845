"""Clients of the MCP SDK over HTTP and stdio, which check every tool result."""

import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.compat.octostore.server import TOKENS, Server
from tests.mcp.forked_stdio import forked_stdio
from tests.proof_size import FULL

OLD, NEW = "2025-11-25", "2026-07-28"
ERAS = {OLD: "legacy", NEW: NEW}
KEY = TOKENS["alice-1"]


class McpClient:
    """A client that records every result, and checks its arguments and its advice against the tools of the server."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.received: list[str] = []
        self._schemas: dict[str, dict] = {}

    async def tools(self):
        listed = (await self.client.list_tools()).tools
        self._schemas = {tool.name: tool.input_schema for tool in listed}
        return listed

    async def ask(self, tool: str, **arguments):
        """Call a tool: (its result, whether it is a refusal)."""
        if not self._schemas:
            await self.tools()
        result = await self.client.call_tool(tool, arguments)
        (text,) = result.content
        self.received.append(text.text)
        assert json.loads(text.text) == result.structured_content
        self.check_advice(result.structured_content["agent_contract"])
        return result.structured_content, result.is_error

    def check_advice(self, contract):
        """There is something to do; every tool that is named exists, with these arguments, and no route is named."""
        assert contract["next_actions"]
        for step in contract["next_actions"]:
            assert "endpoint" not in step, step
            if "tool" in step:
                assert step["arguments"].keys() <= self._schemas[step["tool"]]["properties"].keys(), step

    async def do(self, tool: str, **arguments):
        """Call a tool that must succeed; returns its result."""
        found, refused = await self.ask(tool, **arguments)
        assert not refused, found
        return found

    async def refused(self, tool: str, **arguments):
        """Call a tool that must refuse; returns the refusal."""
        found, refused = await self.ask(tool, **arguments)
        assert refused, found
        assert found["error"]
        assert found["message"]
        return found


@asynccontextmanager
async def over_http(server: Server, era: str = NEW, key: str = KEY, tools: str = "", **headers: str):
    url = f"http://127.0.0.1:{server.port}/mcp" + (f"?tools={tools}" if tools else "")
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}", **headers}, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), mode=ERAS[era]) as client,
    ):
        yield McpClient(client)


@asynccontextmanager
async def over_stdio(era: str = NEW, *flags: str, folder: Path | None = None, **settings: str):
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    variables = {f"HOLDFAST_{name}": value for name, value in settings.items()}
    words, environment = ["mcp", *flags], {**ours, **variables}
    command = {"command": sys.executable, "args": ["-m", "holdfast", *words]}
    started = StdioServerParameters(**command, env=environment, cwd=folder)
    program = started if FULL else forked_stdio(words, environment, folder)
    async with Client(program, mode=ERAS[era]) as client:
        yield McpClient(client)
