"""Renames the fields of a request in texts for clients of MCP: errors name the arguments of the tool."""

from __future__ import annotations

import re
from typing import Any

from holdfast.transport.mcp.tool_schema import Field

_NAME = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+(?:[A-Z][a-z]+)+\b")
"""A name in snake_case or camelCase; a single word is the same in both."""


def in_words_of(fields: tuple[Field, ...], text: str) -> str:
    """A text with the names of a tool's arguments instead of those of the request."""
    names = _argument_names(fields)
    return _NAME.sub(lambda found: names.get(found[0], found[0]), text)


def in_arguments_of(fields: tuple[Field, ...], refusal: dict[str, Any]) -> dict[str, Any]:
    """A refusal whose message and errors name the arguments of the tool."""
    names = _argument_names(fields)
    renamed: dict[str, Any] = {
        name: in_words_of(fields, refusal[name]) for name in ("message", "detail") if isinstance(refusal.get(name), str)
    }
    errors = refusal.get("errors")
    if isinstance(errors, list):
        renamed["errors"] = [
            error
            | {
                "pointer": _rename_pointer(names, error.get("pointer", "")),
                "message": in_words_of(fields, error.get("message", "")),
            }
            for error in errors
        ]
    return refusal | renamed


def _argument_names(fields: tuple[Field, ...]) -> dict[str, str]:
    return {field.wire: field.argument for field in fields}


def _rename_pointer(names: dict[str, str], pointer: str) -> str:
    """A JSON pointer whose first part is an argument."""
    root, *parts = pointer.split("/")
    return "/".join([root, *(names.get(part, part) for part in parts[:1]), *parts[1:]])
