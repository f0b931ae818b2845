"""Optional dependencies: which packages an extra brings, whether they are installed, and the line that installs them.

`pip install holdfast` brings the client, the command line, embedded mode and the server on SQLite. What only some
installations need comes with an extra, so that a program that wants a client does not install a web framework.
"""

from __future__ import annotations

from importlib.util import find_spec

MCP = "mcp"
POSTGRES = "postgres"
OTEL = "otel"

MODULES = {
    MCP: ("mcp", "mcp_types"),
    POSTGRES: ("psycopg",),
    OTEL: ("opentelemetry.trace", "opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"),
}
"""The modules that each extra installs and that we import."""


def is_installed(extra: str) -> bool:
    """Whether every module of an extra can be imported; none is imported to find out."""
    return all(_has_module(name) for name in MODULES[extra])


def install_command(extra: str) -> str:
    """The line that installs an extra."""
    return f"pip install 'holdfast[{extra}]'"


def _has_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent package is not installed either
        return False
