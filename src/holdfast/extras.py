"""Optional dependencies: which packages an extra brings, whether they are installed, and the line that installs them.

`pip install holdfast` brings the client, the command line, embedded mode and the server on SQLite. What only some
installations need comes with an extra, so that a program that wants a client does not install a web framework.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

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


_INSTALLERS = {"uv-receipt.toml": "uv tool install", "pipx_metadata.json": "pipx install --force"}
"""What made an environment, by the file that it leaves there; their environments have no pip of their own."""


def install_command(extra: str, prefix: str = sys.prefix) -> str:
    """The line that installs an extra, with the program that installed this Holdfast."""
    installer = next((each for file, each in _INSTALLERS.items() if Path(prefix, file).exists()), None)
    if installer is None:
        return f"pip install 'holdfast[{extra}]'"
    return f"{installer} '.[{extra}]' in the checkout" if _is_from_checkout() else f"{installer} 'holdfast[{extra}]'"


def _is_from_checkout() -> bool:
    """Whether it was installed from a folder, which a package index does not have."""
    metadata = import_module("importlib.metadata")  # slow to import, and rarely needed
    try:
        return '"dir_info"' in (metadata.distribution("holdfast").read_text("direct_url.json") or "")
    except metadata.PackageNotFoundError:
        return False


def _has_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent package is not installed either
        return False
