"""Which files make the hosts of a repository use Holdfast."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.server_keys import DEFAULT_URL
from holdfast.transport.cli.hosts.files import (
    HOOK,
    NAME,
    AgentFile,
    JsonEntry,
    JsonFile,
    MarkedBlock,
    OwnFile,
    SpaceFile,
    TomlTable,
)
from holdfast.transport.cli.hosts.host import Hooks, Host
from holdfast.transport.cli.hosts.rules import MCP_RULES, skill
from holdfast.transport.cli.hosts.table import HOSTS

_AGENTS, _URL, _PROGRAM = "AGENTS.md", "{url}", "{program}"
_ARGUMENTS = ["mcp"]
"""They start MCP over stdio, which works with every server, also one that was installed without MCP."""


def hosts_in_use(folder: Path) -> list[Host]:
    """The hosts whose files are in the repository."""
    return [host for host in HOSTS if any((folder / sign).exists() for sign in host.signs)]


def files_of(
    folder: Path, hosts: list[Host], url: str, *, require_claim: bool = False, program: str = NAME
) -> list[AgentFile]:
    """All files for these hosts, which run `program`. Two paths that lead to one file are one."""
    files: dict[Path, AgentFile] = {}
    flags = _flags(url, require_claim=require_claim)
    for file in _all_files(folder, hosts, _values(url, program), flags):
        same = files.setdefault(file.path.resolve(), file)
        if same is not file and isinstance(same, JsonFile) and isinstance(file, JsonFile):
            same.entries += file.entries
    return list(files.values())


def _all_files(folder: Path, hosts: list[Host], values: Mapping[str, Any], flags: str) -> Iterator[AgentFile]:
    yield MarkedBlock(folder, _AGENTS, MCP_RULES)
    for host in hosts:
        entry = _fill(host.mcp.entry, values)
        path = _existing(folder, host.mcp.path)
        if path.endswith(".toml"):
            yield TomlTable(folder, path, host.mcp.servers, entry)
        else:
            yield JsonFile(folder, path, [JsonEntry((host.mcp.servers,), NAME, entry)], {})
        yield _hook_file(folder, host, values[_PROGRAM], flags)
        yield from (MarkedBlock(folder, name, MCP_RULES) for name in host.instructions if (folder / name).exists())
        if host.skill is not None:
            yield OwnFile(folder, host.skill, skill(values[_URL]), f"name: {NAME}\n")
    yield SpaceFile(folder)


def _hook_file(folder: Path, host: Host, program: str, flags: str) -> AgentFile:
    hooks = host.hooks
    if hooks.plugin is not None:
        words = "".join(f', "{word}"' for word in flags.split())
        text = hooks.plugin.replace(f'"{_PROGRAM}"', json.dumps(program)).replace("{flags}", words)
        return OwnFile(folder, hooks.path, text, f"`{NAME} init`")
    begin = f"{shlex.quote(program)}{HOOK}{host.name}"
    entries = [
        JsonEntry(("hooks", event.name), None, _command(hooks, f"{begin} {event.name}{flags}", event.matcher))
        for event in hooks.events
    ]
    return JsonFile(folder, hooks.path, entries, hooks.base or {})


def _command(hooks: Hooks, command: str, matcher: str | None) -> dict[str, Any]:
    """A command of an event, as the host reads it."""
    match, extra = ({} if matcher is None else {"matcher": matcher}), hooks.extra or {}
    if not hooks.grouped:
        kind = {} if hooks.base else {"type": "command"}
        return {**kind, "command": command, **match, **extra}
    return {**match, "hooks": [{"type": "command", "command": command, **extra}]}


def _flags(url: str, *, require_claim: bool) -> str:
    """Flags of the command in every hook: only those that are not the default."""
    return (f" --url {url}" if url != DEFAULT_URL else "") + (" --require-claim" if require_claim else "")


def _existing(folder: Path, path: str) -> str:
    """The path, or the same with comments allowed (`.jsonc`) if that file exists."""
    return f"{path}c" if path.endswith(".json") and (folder / f"{path}c").exists() else path


def _values(url: str, program: str) -> dict[str, Any]:
    """What takes the place of the words in braces."""
    return {_URL: url, "{words}": [program, *_ARGUMENTS], _PROGRAM: program, "{arguments}": _ARGUMENTS}


def _fill(value: Any, values: Mapping[str, Any]) -> Any:
    """An entry with these values."""
    if isinstance(value, dict):
        return {key: _fill(each, values) for key, each in value.items()}
    return values.get(value, value) if isinstance(value, str) else value
