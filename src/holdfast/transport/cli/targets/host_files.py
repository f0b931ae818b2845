"""Entries for Holdfast in the configuration files of coding agents, in a repository.

Values are read as the host would read them if it were started from this shell. Nothing is sent here: a repository that
somebody else wrote must not choose where a key goes.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

HOST_FILES = {
    ".mcp.json": "mcpServers",
    ".cursor/mcp.json": "mcpServers",
    ".vscode/mcp.json": "servers",
    ".codex/config.toml": "mcp_servers",
    ".gemini/settings.json": "mcpServers",
    "opencode.json": "mcp",
}
"""Configuration files, and the table of MCP servers in each."""
_PLACEHOLDER = re.compile(r"\$?\{(?:env:)?(\w+)(?::-([^}]*))?\}|\$(\w+)")
_BEARER = "Bearer "


class HostEntry(NamedTuple):
    """How one host reaches Holdfast: through `holdfast mcp` with variables, or at a URL with a key."""

    file: str
    variables: Mapping[str, str]
    """The environment of `holdfast mcp`."""
    store: str | None = None
    """Its flag --store."""
    url: str | None = None
    """The server, if the host calls it over HTTP."""
    key: str | None = None


class UnreadFile(NamedTuple):
    """A configuration that cannot be read."""

    file: str
    problem: str


def read_host_files(root: Path, environ: Mapping[str, str]) -> Iterator[HostEntry | UnreadFile]:
    """Every entry for Holdfast below the root of a repository."""
    for name, table in HOST_FILES.items():
        try:
            text = (root / name).read_text("utf-8")
            document = tomllib.loads(text) if name.endswith(".toml") else json.loads(text)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            yield UnreadFile(name, str(error))
            continue
        servers = document.get(table) if isinstance(document, dict) else None
        for title, entry in (servers if isinstance(servers, dict) else {}).items():
            if isinstance(entry, dict) and entry.get("enabled") is not False and not entry.get("disabled"):
                yield from _read_entry(name, title, entry, environ)


def _read_entry(file: str, title: str, entry: dict[str, Any], environ: Mapping[str, str]) -> Iterator[HostEntry]:
    command = entry.get("command", [])
    words = [*(command if isinstance(command, list) else [command]), *_list(entry.get("args"))]
    variables = dict(environ)
    for name, value in (_dict(entry.get("env")) | _dict(entry.get("environment"))).items():
        variables[name] = expand(str(value), environ)
    if "mcp" in words and any("holdfast" in str(word) for word in words):
        store = words[words.index("--store") + 1] if "--store" in words[:-1] else None
        yield HostEntry(file, variables, store=store)
    url = expand(str(entry.get("url") or entry.get("httpUrl") or ""), environ).rstrip("/")
    if url.endswith("/mcp") and ("holdfast" in title.lower() or "holdfast" in url):
        yield HostEntry(file, variables, url=url.removesuffix("/mcp"), key=_bearer_key(entry, environ))


def _bearer_key(entry: dict[str, Any], environ: Mapping[str, str]) -> str | None:
    named = entry.get("bearer_token_env_var")
    if isinstance(named, str):
        return environ.get(named) or None
    headers = _dict(entry.get("headers")) | _dict(entry.get("http_headers"))
    sent = next((str(value) for name, value in headers.items() if name.lower() == "authorization"), "")
    key = expand(sent, environ).removeprefix(_BEARER).strip()
    return key or None


def expand(text: str, environ: Mapping[str, str]) -> str:
    """The text with variables of the environment in place of `${NAME}`, `${NAME:-default}`, `{env:NAME}`, `$NAME`."""
    return _PLACEHOLDER.sub(
        lambda found: environ.get(found[1] or found[3]) or found[2] or "", re.sub(r"\$\{input:[^}]*\}", "", text)
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
