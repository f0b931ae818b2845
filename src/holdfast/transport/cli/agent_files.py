"""What `init` writes into a repository: a block for AGENTS.md, an entry for MCP clients, and a skill."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.settings import Settings
from holdfast.transport.cli.agent_rules import RULES
from holdfast.transport.documents.guides import skill_md

_BEGIN, _END = "<!-- holdfast: begin -->", "<!-- holdfast: end -->"
_NAME = "holdfast"


class Lesson(ABC):
    """A file, with what is ours in it or without."""

    def __init__(self, folder: Path, *place: str) -> None:
        self._folder, self.path = folder, folder.joinpath(*place)
        if not self.path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{self.path} leads out of the folder")

    def read(self) -> str:
        """Its text; a file that is not there is an empty one."""
        return self.path.read_text("utf-8") if self.path.exists() else ""

    def write(self, text: str) -> None:
        """All of the new text or all of the old, whatever happens in between; an empty text is no file."""
        if not text:
            self.path.unlink(missing_ok=True)
            for parent in self.path.relative_to(self._folder).parents[:-1]:
                with suppress(OSError):  # somebody else's files are in it
                    (self._folder / parent).rmdir()
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        fresh.write_text(text, "utf-8")
        fresh.replace(self.path)

    @abstractmethod
    def taught(self, text: str) -> str:
        """The text with what is ours."""

    @abstractmethod
    def without(self, text: str) -> str:
        """The text without it."""


class Block(Lesson):
    """Words between two marks; everything around them belongs to somebody else."""

    def taught(self, text: str) -> str:
        others = self.without(text)
        gap = "" if not others else "\n"
        return f"{others}{gap}{_BEGIN}\n{RULES}{_END}\n"

    def without(self, text: str) -> str:
        before, begin, rest = text.partition(_BEGIN)
        _, end, after = rest.partition(_END)
        if not begin:
            return text
        if not end:
            raise ValueError(f"{self.path} has {_BEGIN} but not {_END}: mend it first")
        return before.removesuffix("\n") + after.removeprefix("\n") if before else after.removeprefix("\n")


class Entry(Lesson):
    """One entry among others in a configuration of MCP clients."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder, ".mcp.json")
        # Over stdio: this works with every server, also one that was installed without MCP.
        self._entry = {
            "command": "uvx",
            "args": ["--from", "holdfast[mcp]", "holdfast", "mcp"],
            "env": {"HOLDFAST_URL": url, "HOLDFAST_API_KEY": "${HOLDFAST_API_KEY}"},
        }

    def taught(self, text: str) -> str:
        found = self._parse(text)
        servers = {**found.get("mcpServers", {}), _NAME: self._entry}
        if found.get("mcpServers", {}).get(_NAME) == self._entry:
            return text
        return json.dumps({**found, "mcpServers": servers}, indent=2) + "\n"

    def without(self, text: str) -> str:
        found = self._parse(text)
        if _NAME not in found.get("mcpServers", {}):
            return text
        servers = {name: server for name, server in found["mcpServers"].items() if name != _NAME}
        left = {**found, "mcpServers": servers}
        return "" if left == {"mcpServers": {}} else json.dumps(left, indent=2) + "\n"

    def _parse(self, text: str) -> dict[str, Any]:
        try:
            found = json.loads(text) if text else {}
        except ValueError as error:
            raise ValueError(f"{self.path} is not JSON: {error}") from error
        if not isinstance(found, dict) or not isinstance(found.get("mcpServers", {}), dict):
            raise ValueError(f"{self.path} is not a configuration of MCP clients")  # noqa: TRY004 - the file is wrong
        return found


class Skill(Lesson):
    """A file that is all ours."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder, ".claude", "skills", _NAME, "SKILL.md")
        self._text = skill_md(Settings(store="memory:", public_url=url))

    def taught(self, text: str) -> str:  # noqa: ARG002 - whatever was there is replaced
        return self._text

    def without(self, text: str) -> str:
        return "" if text.startswith(self._text.partition("description:")[0]) else text


def lessons(folder: Path, url: str) -> list[Lesson]:
    """Everything that `init` writes."""
    return [Block(folder, "AGENTS.md"), Entry(folder, url), Skill(folder, url)]
