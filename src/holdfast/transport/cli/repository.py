"""The repository that the program is run in: its space, its root, and paths relative to the root."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

from holdfast.space import HOW_TO_SET, InvalidSpaceFile, find_space, find_space_file
from holdfast.transport.cli.verbs.verb import WrongUsage

EVERYTHING = "**"
"""Pattern of all files of a repository."""
_WILDCARDS = frozenset("*?")


class Repository:
    """The repository around a folder, the current one by default. Outside of one, the folder counts as its root."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path.cwd()
        self.root = _find_root(self._folder)

    def pattern(self, text: str) -> str:
        """The pattern for a path on the command line, relative to the root: a folder means everything below it.

        One with a wildcard is not resolved in the file system; the current folder is put in front of it.
        """
        if _WILDCARDS & set(text):
            folder = self._folder.resolve().relative_to(self.root)
            return text if folder == Path() else f"{unicodedata.normalize('NFC', folder.as_posix())}/{text}"
        path, is_folder = self._resolve(text)
        if path == ".":
            return EVERYTHING
        return f"{path}/" if is_folder or text.endswith("/") else path

    def file(self, text: str) -> str:
        """The path of one file. A folder is refused, unless it is a submodule, which git treats like a file."""
        path, is_folder = self._resolve(text)
        if text.endswith("/") or (is_folder and (path == "." or not (self.root / path / ".git").exists())):
            raise WrongUsage(f"{text} is a folder: name the files in it")
        return path

    def _resolve(self, text: str) -> tuple[str, bool]:
        """A path relative to the root, and whether it is a folder.

        Links to folders are followed, because what is written below them is elsewhere.
        """
        path = self._folder / text
        is_folder = path.is_dir()
        resolved = path.resolve() if is_folder else path.parent.resolve() / path.name
        try:
            found = unicodedata.normalize("NFC", resolved.relative_to(self.root).as_posix())
            found.encode()
        except UnicodeEncodeError as error:
            raise WrongUsage(f"{text!a} is not UTF-8") from error
        except ValueError as error:
            raise WrongUsage(f"{text} is outside of the repository {self.root}") from error
        return found, is_folder


def space_or_none(named: str | None) -> str | None:
    """The space that a flag, HOLDFAST_SPACE or `.holdfast.toml` names."""
    try:
        return named or find_space()
    except InvalidSpaceFile as error:
        raise WrongUsage(str(error)) from error


def space_of(named: str | None) -> str:
    """The same; wrong usage if there is none."""
    space = space_or_none(named)
    if space is None:
        raise WrongUsage(f"--space is required: nothing names the space of this folder. {HOW_TO_SET}")
    return space


def _find_root(folder: Path) -> Path:
    """The folder of the nearest `.holdfast.toml`, else the top folder of the git repository, else this folder."""
    file = find_space_file(folder)
    if file is not None:
        return Path(os.path.realpath(file.parent))
    tops = (candidate for candidate in (folder, *folder.parents) if (candidate / ".git").exists())
    return Path(os.path.realpath(next(tops, folder)))
