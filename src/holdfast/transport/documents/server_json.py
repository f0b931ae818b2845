"""The entry for the MCP Registry: `python -m holdfast.transport.documents.server_json > server.json`."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from holdfast import __version__

NAME = "io.github.holdfast/holdfast"
"""The README carries it too: that is how the registry knows that the package is ours."""
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
MOST_DESCRIBED = 100


def server_json() -> dict[str, Any]:
    """What a host needs to know to start us over stdio: for a server, or without one for a file."""
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
                # uvx installs the identifier; `--from` asks for it with the extra, and is in front of the command.
                "runtimeArguments": [{"type": "named", "name": "--from", "value": "holdfast[mcp]"}],
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": "mcp"}],
                "environmentVariables": [
                    {
                        "name": "HOLDFAST_URL",
                        "description": "The server to speak for; without one, a file of your own is used.",
                        "format": "string",
                    },
                    {
                        "name": "HOLDFAST_API_KEY",
                        "description": "A key of that server.",
                        "format": "string",
                        "isSecret": True,
                    },
                ],
            }
        ],
    }


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(server_json()), indent=2) + b"\n")
