"""The space of a repository: the name under which its paths are reserved.

It is written in `.holdfast.toml`, which is committed, so that everyone who works on the repository uses the same one:

    space = "acme/shop"
"""

from __future__ import annotations

import os
from pathlib import Path

FILE_NAME = ".holdfast.toml"
VARIABLE = "HOLDFAST_SPACE"
HOW_TO_SET = f"Run `holdfast init` in the repository, which writes {FILE_NAME}, or set {VARIABLE}."
"""What to do where no space is found."""


class InvalidSpaceFile(ValueError):
    """A `.holdfast.toml` that names no space. The message has its path and what is wrong."""


def find_space(start: Path | None = None) -> str | None:
    """The space in HOLDFAST_SPACE, else in the nearest `.holdfast.toml`; None if there is neither.

    `start` is the folder to search from, by default the current one. Raises InvalidSpaceFile.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return named
    file = find_space_file(start)
    return None if file is None else read_space_file(file)


def find_space_file(start: Path | None = None) -> Path | None:
    """The nearest `.holdfast.toml`, from `start` upwards to the root of its repository; None if there is none.

    Outside a repository, all folders above are searched.
    """
    folder = (start or Path.cwd()).absolute()
    for candidate in (folder, *folder.parents):
        if (candidate / FILE_NAME).is_file():
            return candidate / FILE_NAME
        if (candidate / ".git").exists():  # a folder, or a file in a linked worktree or a submodule
            return None
    return None


def read_space_file(file: Path) -> str:
    """The space that a `.holdfast.toml` names. Other keys are left to other versions. Raises InvalidSpaceFile."""
    import tomllib  # hooks of agents run often, and seldom read it

    try:
        content = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InvalidSpaceFile(f"cannot read {file}: {error}") from error
    space = content.get("space")
    if not isinstance(space, str) or not space.strip():
        raise InvalidSpaceFile(f'{file} must name the space of the repository, such as space = "acme/shop"')
    return space
