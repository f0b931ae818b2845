"""What a tool is: a name for one operation, or for several of which the arguments choose one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.operations.operation import Operation
from holdfast.operations.table import OPERATIONS_BY_NAME

ACTION = "action"
"""The argument that chooses the operation of a tool with actions."""
_UUID = re.compile(r"[0-9a-fA-F-]{36}")


class Call(msgspec.Struct, frozen=True):
    """One operation of a tool, and which arguments choose it."""

    operation: str
    action: str | None = None
    """The value of `action` that chooses it."""
    given: str | None = None
    """The argument that chooses it by being there."""
    uuid: str | None = None
    """The argument that chooses it by being a UUID."""
    names: Mapping[str, str] = {}
    """Names of arguments by the name of their field in the request, where they are not the usual ones."""
    first: Mapping[str, str] = {}
    """By the name of a list in the request: the argument whose value is put before those of the list."""
    fixed: Mapping[str, Any] = {}
    """Fields that are sent with these values unless the caller sends others."""
    omits: frozenset[str] = frozenset()
    """Fields of the answer that are left out, at any depth: the caller has sent or read them already."""

    @property
    def target(self) -> Operation:
        """The operation itself."""
        return OPERATIONS_BY_NAME[self.operation]

    @property
    def is_default(self) -> bool:
        """Whether it needs no argument to be chosen."""
        return self.action is self.given is self.uuid is None

    def is_chosen(self, arguments: Mapping[str, Any]) -> bool:
        """Whether these arguments choose it. Their names are those of the schema."""
        if self.action is not None:
            return arguments.get(ACTION) == self.action
        if self.uuid is not None:
            value = arguments.get(self.uuid)
            return isinstance(value, str) and _UUID.fullmatch(value) is not None
        return self.given is None or arguments.get(self.given) is not None


class Tool(msgspec.Struct, frozen=True):
    """One or several operations as an MCP tool."""

    name: str
    calls: tuple[Call, ...]
    """The first one that the arguments choose is called."""
    title: str
    description: str
    is_read_only: bool = False
    """It changes nothing."""
    is_destructive: bool = False
    """It may end something that is still in use."""
    is_idempotent: bool = False
    """Repeating it has no further effect."""
    summarises: str = ""
    """The list in its answer whose rows are shortened, so that a page fits into a model's context."""
    is_whole: bool = False
    """Long strings in these rows are not cut: the caller needs them to continue its work."""

    @property
    def default(self) -> Call | None:
        """The call that no argument has to choose."""
        return next((call for call in self.calls if call.is_default), None)

    @property
    def actions(self) -> list[str]:
        """The values of its argument `action`; none for most tools."""
        return [call.action for call in self.calls if call.action is not None]

    def chosen(self, arguments: Mapping[str, Any]) -> Call | None:
        """The call that the arguments choose; None if `action` has none of its values."""
        return next((call for call in self.calls if call.is_chosen(arguments)), None)

    @property
    def shows_text_of_others(self) -> bool:
        """Whether its result can have text that other agents wrote: not if it only shows what is the caller's."""
        return any(call.operation not in _ONLY_OWN_TEXT for call in self.calls)


_ONLY_OWN_TEXT = {"create_task", "heartbeat_job"}


def only(operation: str, omits: frozenset[str] = frozenset(), **names: str) -> tuple[Call, ...]:
    """The calls of a tool with one operation; `names` are the arguments of its fields, where not the usual ones."""
    return (Call(operation, names=names, omits=omits),)
