"""What a host writes to the stdin of a hook: the session, the folder, and the tool with its input and answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EDITING_TOOLS = frozenset(
    (
        *("edit", "multiedit", "write", "notebookedit"),  # Claude Code, opencode
        *("apply_patch", "patch"),  # Codex, opencode, VS Code
        *("write_file", "replace"),  # Gemini CLI
        *("strreplace", "str_replace", "delete", "tabwrite", "edit_file", "search_replace", "delete_file"),  # Cursor
        *("create_file", "replace_string_in_file", "multi_replace_string_in_file", "insert_edit_into_file"),  # VS Code
        *("edit_notebook_file", "editfiles", "create_new_file"),
    )
)
"""Tools that change files, of all hosts, in lower case."""
_PATHS = ("file_path", "filePath", "notebook_path", "path", "target_file", "target_notebook")
_LISTS = ("files", "edits", "replacements")
_PATCHES = ("command", "input", "patch", "patchText")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)
_SESSION = ("session_id", "conversation_id", "sessionId")
_DEPTH = 6


class Payload:
    """The parsed input of a hook. What a host leaves out is empty."""

    def __init__(self, text: str) -> None:
        """Raises ValueError if it is no JSON object."""
        found: dict[str, Any] | Any = json.loads(text)
        self.fields = found if isinstance(found, dict) else {}
        if found != self.fields:
            raise ValueError("the input of a hook is a JSON object")

    @property
    def session(self) -> str:
        return next((str(self.fields[name]) for name in _SESSION if self.fields.get(name)), "")

    @property
    def folder(self) -> Path:
        """The folder in which the agent works."""
        roots = self.fields.get("workspace_roots")
        named = self.fields.get("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
        return Path(named) if isinstance(named, str) else Path.cwd()

    @property
    def event(self) -> str:
        return str(self.fields.get("hook_event_name") or "")

    @property
    def tool(self) -> str:
        return str(self.fields.get("tool_name") or "")

    def text(self, *names: str) -> str:
        """The first of these fields that is a text."""
        return next((value for name in names if isinstance(value := self.fields.get(name), str)), "")

    def edited_files(self) -> list[str]:
        """The files that the tool is about to change."""
        if self.tool.lower() not in EDITING_TOOLS:
            return []
        return list(dict.fromkeys(_paths_in(_parsed(self.fields.get("tool_input")))))

    def granted(self) -> Iterator[dict[str, Any]]:
        """The answers in which a tool of our MCP server was granted a lease."""
        for name in ("tool_response", "result_json", "tool_output"):
            for document in _documents(self.fields.get(name), _DEPTH):
                if document.get("lease_id") or document.get("leaseId"):
                    yield document


def _paths_in(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield from _PATCHED.findall(given) or [given]
    if not isinstance(given, dict):
        return
    yield from (given[name] for name in _PATHS if isinstance(given.get(name), str))
    for name in _PATCHES:
        if isinstance(given.get(name), str):
            yield from _PATCHED.findall(given[name])
    for name in _LISTS:
        if isinstance(given.get(name), list):
            for item in given[name]:
                yield from _paths_in(item)


def _documents(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """All objects in a value, also those that are written as JSON inside a text."""
    value = _parsed(value)
    if depth == 0:
        return
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _documents(each, depth - 1)
    elif isinstance(value, list):
        for each in value:
            yield from _documents(each, depth - 1)


def _parsed(value: Any) -> Any:
    """A text that is a JSON object or list, parsed; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
