"""Advice in the words of MCP: tools and their arguments."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from holdfast.operations.operation import Operation
from holdfast.transport.advice.doors import Document
from holdfast.transport.http.system.openapi import openapi
from holdfast.transport.mcp.tool_schema import LEASE_ID, MILLISECONDS, Field, fields_of
from holdfast.transport.mcp.tools import TOOLS, Tool, operation_of

_SHOWN_LEASE_IDS = ("lease_id", "leaseId")


class ToolDoor:
    """The tools of one list, with their arguments."""

    def __init__(self, tools: tuple[Tool, ...], fields: Mapping[str, tuple[Field, ...]]) -> None:
        self._tools = {tool.operation: tool.name for tool in tools}
        self._fields = {tool.operation: fields[tool.name] for tool in tools}

    def call(self, operation: Operation, values: Mapping[str, str], known: Document) -> dict[str, Any] | None:
        """The tool, the arguments that are known, and the names of those that it needs beside them."""
        if operation.name not in self._tools:
            return None
        fields = self._fields[operation.name]
        arguments = {field.argument: _value(field, values[field.wire]) for field in fields if field.wire in values}
        for field in fields:
            if field.wire == LEASE_ID and (shown := _shown_lease_id(known)) is not None:
                arguments[field.argument] = shown
        needs = [field.argument for field in fields if field.required and field.argument not in arguments]
        return {"tool": self._tools[operation.name], "arguments": arguments} | ({"needs": needs} if needs else {})

    def names(self, operation: str) -> Mapping[str, str]:
        """The arguments of an operation's tool."""
        return {field.wire: field.argument for field in self._fields.get(operation, ())}

    def operations(self) -> Mapping[str, str]:
        """The tool of each operation."""
        return self._tools


@functools.cache
def all_tools() -> ToolDoor:
    """Every tool."""
    return ToolDoor(TOOLS, {tool.name: fields_of(operation_of(tool), openapi()) for tool in TOOLS})


def _value(field: Field, text: str) -> Any:
    """A value of a path or query as the tool takes it."""
    if not field.duration:
        return int(text) if field.schema.get("type") == "integer" else text
    return int(float(text) * MILLISECONDS)


def _shown_lease_id(known: Document) -> str | None:
    return next((known[name] for name in _SHOWN_LEASE_IDS if isinstance(known.get(name), str)), None)
