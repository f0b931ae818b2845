"""Files of a repository that `init` changes: adds our content, and removes it without changing another byte."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.space import FILE_NAME, find_space_file
from holdfast.transport.cli.hosts import json_text
from holdfast.transport.cli.hosts.default_space import default_space

NAME = "holdfast"
"""Our name among MCP servers."""
HOOK = " hook "
"""What follows the program in our commands in hooks."""
_HOOK_COMMAND = re.compile(rf"""["/]{NAME}'?{HOOK}""")
"""The program by its name, or by its path, which may be between quotation marks."""
_SPACE_COMMENT = "# The name under which files of this repository are reserved: the same for everyone. Commit it.\n"


class AgentFile(ABC):
    """A file of the repository that holds our content, alone or among other content."""

    def __init__(self, folder: Path, path: str) -> None:
        self._folder, self.path = folder, folder / path
        if not self.path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{self.path} points outside the folder")

    def read(self) -> str | None:
        """Text of the file, with its line ends; None if it does not exist."""
        try:
            return self.path.read_bytes().decode()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is not UTF-8: {error}") from error

    def write(self, text: str | None) -> None:
        """Replace the file atomically. None removes it, and its folders if they are empty then."""
        path = self.path.resolve()  # of a link, the file that it leads to
        if text is None:
            path.unlink(missing_ok=True)
            for parent in self.path.relative_to(self._folder).parents[:-1]:
                with suppress(OSError):  # other files are in it
                    (self._folder / parent).rmdir()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(text.encode())
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)

    @abstractmethod
    def add_to(self, text: str | None, /) -> str | None:
        """The text with our content; as it is, if it must not have it."""

    @abstractmethod
    def remove_from(self, text: str, /) -> str | None:
        """The text without our content; None if nothing else was in it."""


class MarkedBlock(AgentFile):
    """A block between two marker lines at the end; the text around it is not ours."""

    def __init__(self, folder: Path, path: str, block: str, marker: str = "<!-- {} -->") -> None:
        super().__init__(folder, path)
        self._block, self._begin, self._end = block, marker.format("holdfast: begin"), marker.format("holdfast: end")

    def add_to(self, text: str | None, /) -> str:
        others = None if text is None else self.remove_from(text)
        newline = "\r\n" if others is not None and "\r\n" in others else "\n"
        block = f"{self._begin}\n{self._block}{self._end}\n".replace("\n", newline)
        return block if others is None else f"{others}{newline}{block}"

    def remove_from(self, text: str, /) -> str | None:
        before, begin, rest = text.partition(self._begin)
        _, end, after = rest.partition(self._end)
        if not begin:
            return text
        if not end:
            raise ValueError(f"{self.path} has {self._begin} but not {self._end}: fix it first")
        newline = "\r\n" if after.startswith("\r\n") else "\n"
        after = after.removeprefix(newline)
        return None if not before and not after else before.removesuffix(newline) + after


class TomlTable(MarkedBlock):
    """Our MCP server in a TOML file. One that somebody else configured is left alone."""

    def __init__(self, folder: Path, path: str, table: str, entry: dict[str, Any]) -> None:
        self._table = table
        super().__init__(folder, path, "\n".join(_toml(f"{table}.{NAME}", entry)) + "\n", "# {}")

    def add_to(self, text: str | None, /) -> str:
        others = self.remove_from(text) if text is not None else None
        try:
            found = tomllib.loads(others or "")
        except ValueError as error:
            raise ValueError(f"{self.path} is not TOML: {error}") from error
        return text or "" if NAME in found.get(self._table, {}) else super().add_to(text)


class JsonEntry(NamedTuple):
    """A value that we add to the object or list at a path."""

    path: tuple[str, ...]
    key: str | None
    """Its key; None for an item of a list."""
    value: Any


class JsonFile(AgentFile):
    """Our entries in a JSON file, also one with comments: MCP servers and hooks."""

    def __init__(self, folder: Path, path: str, entries: Iterable[JsonEntry], base: dict[str, Any]) -> None:
        super().__init__(folder, path)
        self.entries, self._base = list(entries), base

    def add_to(self, text: str | None, /) -> str:
        if text is not None and not text.strip():
            raise ValueError(f"{self.path} is not JSON: it is empty; remove it first")
        others = "" if text is None else self.remove_from(text) or ""
        if not others and self._base:
            others = _document(self._base)
        for entry in reversed(self.entries):  # each is put before the others
            if entry.key is None or entry.key not in self._at(others, entry.path):
                others = json_text.add(others, entry.path, entry.key, entry.value)
        return others

    def remove_from(self, text: str, /) -> str | None:
        for path in dict.fromkeys(entry.path for entry in self.entries):
            self._at(text, path)
            text = json_text.remove(text, path, is_ours)
        return None if not text or (self._base and text == _document(self._base)) else text

    def _at(self, text: str, path: tuple[str, ...]) -> Any:
        """The object or list at a path, empty if there is none. Raises ValueError if it is something else."""
        try:
            found: Any = json_text.parse(text) if text else {}
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.path} is not JSON: {error}") from error
        for key in path:
            found = found.get(key, {}) if isinstance(found, dict) else None
        if isinstance(found, dict | list):
            return found
        raise ValueError(f"{self.path} is not as expected: {'.'.join(path)} is neither an object nor a list")


def is_ours(key: str | int, value: Any) -> bool:
    """Whether `init` wrote an entry: our MCP server, with the owner that `init` sets, or a hook that runs us."""
    text = json.dumps(value)
    if isinstance(key, int):
        return _HOOK_COMMAND.search(text) is not None
    return key == NAME and "HOLDFAST_" in text


class OwnFile(AgentFile):
    """A file that is all ours."""

    def __init__(self, folder: Path, path: str, text: str, mark: str) -> None:
        super().__init__(folder, path)
        self._text, self._mark = text, mark

    def add_to(self, text: str | None, /) -> str:
        return self._text if text is None or self._mark in text else text

    def remove_from(self, text: str, /) -> str | None:
        return None if self._mark in text else text


class SpaceFile(AgentFile):
    """The file with the space of the repository. A value that somebody chose is never changed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FILE_NAME)
        self._block = f"{_SPACE_COMMENT}space = {json.dumps(default_space(folder), ensure_ascii=False)}\n"

    def add_to(self, text: str | None, /) -> str | None:
        try:
            has_space = text is not None and "space" in tomllib.loads(text)
        except ValueError as error:
            raise ValueError(f"{self.path} is not TOML: {error}") from error
        # A file in a folder above it, within the same repository, is for this folder as well.
        is_covered = text is None and find_space_file(self._folder) is not None
        # At the top: behind a table, the key would belong to the table.
        return text if has_space or is_covered else self._block + (text or "")

    def remove_from(self, text: str, /) -> str | None:
        return text.replace(self._block, "", 1) or None


def _document(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _toml(table: str, entry: dict[str, Any]) -> list[str]:
    """A table with its values, then those inside it. JSON strings and lists of them are valid TOML."""
    lines = [f"[{table}]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items() if not isinstance(value, dict)]
    for key, value in entry.items():
        lines += ["", *_toml(f"{table}.{key}", value)] if isinstance(value, dict) else []
    return lines
