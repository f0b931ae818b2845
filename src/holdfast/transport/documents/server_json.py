"""The entry for the MCP Registry: `python -m holdfast.transport.documents.server_json > server.json`."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from holdfast import __version__

NAME = "io.github.holdfast/holdfast"
"""Also in the README, where the registry reads it to verify the owner of the package."""
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def server_json() -> dict[str, Any]:
    """How an MCP host starts Holdfast over stdio, for a server or for a local file."""
    return {
        "$schema": SCHEMA,
        "name": NAME,
        "title": "Holdfast",
        "description": "One live owner, a visible history and automatic recovery for every piece of agent work.",
        "version": __version__,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": "holdfast",
                "version": __version__,
                "runtimeHint": "uvx",
                # uvx installs the identifier; `--from` adds the extra and precedes the command.
                "runtimeArguments": [{"type": "named", "name": "--from", "value": "holdfast[mcp]"}],
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": "mcp"}],
                "environmentVariables": [
                    {
                        "name": "HOLDFAST_URL",
                        "description": "URL of the server; without one, this machine's server or a local file is used.",
                        "format": "string",
                    },
                    {
                        "name": "HOLDFAST_API_KEY",
                        "description": "API key of that server; not needed on its own machine.",
                        "format": "string",
                        "isSecret": True,
                    },
                ],
            }
        ],
    }


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(server_json()), indent=2) + b"\n")
