"""Files that only their user can read: checked when they are read, replaced as a whole, changed under a lock."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE = 0o600


class UnusableFile(ValueError):
    """A file that cannot be used. The message has its path and the reason, never its content."""


def read_private(path: str | Path) -> str:
    """Content of a file; refused if other users can read it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(file, encoding="utf-8") as opened:
            if os.fstat(file).st_mode & 0o077:
                raise UnusableFile(f"other users can read {path}: run chmod 600 on it")
            return opened.read()
    except OSError as error:
        raise UnusableFile(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnusableFile(f"{path} is not UTF-8") from error


def read_private_or_none(path: Path) -> str | None:
    """The same; None if there is no such file, or no home folder that it could be in."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnusableFile(f"cannot read {path}: {error.strerror}") from error
    return read_private(path) if path.is_absolute() else None


def write_beside(path: Path, content: bytes) -> Path:
    """Write a new file in the same folder, with which the caller then replaces this one: all of it or nothing."""
    new = path.with_suffix(".new")
    with os.fdopen(os.open(new, _NEW_FILE, _PRIVATE), "wb") as file:
        os.fchmod(file.fileno(), _PRIVATE)
        file.write(content)
    return new


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other program has locked this file, which is none that is replaced; lock it meanwhile."""
    file = open_lock(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):
            os.close(file)


def open_lock(path: Path) -> int:
    """Descriptor of a file to lock, in a folder that is made for the user alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, _LOCK_FILE, _PRIVATE)
