"""Advice in the words of MCP: tools of the set in use, and their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.operations.operation import Operation
from holdfast.transport.advice.wording import Document
from holdfast.transport.mcp.operator_tools import ToolSet
from holdfast.transport.mcp.tool import ACTION, Call, Tool
from holdfast.transport.mcp.tool_schema import LEASE_ID, MILLISECONDS, Field

FieldsByTool = Mapping[str, Mapping[str, tuple[Field, ...]]]
"""The arguments of every tool, by operation."""

_SHOWN_LEASE_IDS = ("lease_id", "leaseId")


class ToolWording:
    """The tools of one set, with their arguments."""

    def __init__(self, tools: ToolSet, fields: FieldsByTool) -> None:
        self._set = tools
        self._fields = fields
        self._tools = {call.operation: tool.name for tool in reversed(tools.tools) for call in tool.calls}

    def call(self, operation: Operation, values: Mapping[str, str], known: Document, code: str) -> Document | None:
        """The tool, the arguments that are known, and the names of those that it needs beside them."""
        found = self._set.find(operation.name, code)
        if found is None:
            return None
        tool, call = found
        fields = self._fields[tool.name][call.operation]
        arguments: Document = {} if call.action is None else {ACTION: call.action}
        arguments |= {field.argument: _value(field, values[field.wire]) for field in fields if field.wire in values}
        for field in fields:
            if field.wire == LEASE_ID and (shown := _shown_lease_id(known)) is not None:
                arguments[field.argument] = shown
        needs = [name for name in self._required(tool, call) if name not in arguments]
        return {"tool": tool.name, "arguments": arguments} | ({"needs": needs} if needs else {})

    def names(self, operation: str) -> Mapping[str, str]:
        """The arguments of an operation's tool."""
        fields = self._fields[self._tools[operation]][operation] if operation in self._tools else ()
        return {field.wire: field.argument for field in fields}

    def operations(self) -> Mapping[str, str]:
        """The tool of each operation."""
        return self._tools

    def _required(self, tool: Tool, call: Call) -> list[str]:
        """What the operation needs, and what the schema of the tool requires: the arguments of its usual operation."""
        usual = call if tool.default is None else tool.default
        fields = (*self._fields[tool.name][call.operation], *self._fields[tool.name][usual.operation])
        return list(dict.fromkeys([*call.first.values(), *(field.argument for field in fields if field.required)]))


def _value(field: Field, text: str) -> Any:
    """A value of a path or query as the tool takes it."""
    if not field.duration:
        return int(text) if field.schema.get("type") == "integer" else text
    return int(float(text) * MILLISECONDS)


def _shown_lease_id(known: Document) -> str | None:
    return next((known[name] for name in _SHOWN_LEASE_IDS if isinstance(known.get(name), str)), None)
