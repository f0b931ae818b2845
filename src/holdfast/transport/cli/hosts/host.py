"""What is known of a host: the files that show that it is used, and those that configure it."""

from __future__ import annotations

from typing import Any, NamedTuple

START, BEFORE_TOOL, AFTER_TOOL, STOP, END = "start", "before_tool", "after_tool", "stop", "end"
"""What happens in a session of an agent. Each host has its own names for these events."""


class McpFile(NamedTuple):
    """The file with the MCP servers of a host."""

    path: str
    servers: str
    """Key of the object that has the servers; for TOML, of the table."""
    entry: dict[str, Any]
    """Our entry. In it `{url}` is the server's address, `{words}` the command that starts MCP over stdio, `{program}`
    its first word and `{arguments}` the others."""


class HookEvent(NamedTuple):
    """An event for which a host runs a command."""

    name: str
    kind: str
    matcher: str | None = None
    """Names of the tools for which it is run; None for all, or if the event is not about tools."""


class Hooks(NamedTuple):
    """The hooks of a host: where they are written, and how it reads the answer."""

    path: str
    events: tuple[HookEvent, ...]
    answer: str
    """How a refusal and a text for the model are written: a key of the table of answers."""
    grouped: bool = True
    """Whether commands are in groups with a matcher, as Claude Code has them, or entries of the event itself."""
    extra: dict[str, Any] | None = None
    """Other fields of each command, such as its time limit."""
    base: dict[str, Any] | None = None
    """What the file must have besides the hooks."""
    plugin: str | None = None
    """Text of a program that is all of the file, for a host whose hooks are programs."""


class Host(NamedTuple):
    """A host."""

    name: str
    title: str
    signs: tuple[str, ...]
    """Files and folders of a repository that show that it is used there."""
    mcp: McpFile
    hooks: Hooks
    instructions: tuple[str, ...] = ()
    """Files of instructions that it reads besides AGENTS.md; our rules are added to those that exist."""
    skill: str | None = None
    """Where it finds a skill."""

    def event(self, name: str) -> HookEvent | None:
        """The event with this name."""
        return next((event for event in self.hooks.events if event.name == name), None)
