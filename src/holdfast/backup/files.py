"""A file that has its name only once it is complete."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from holdfast.backup.endpoint import CopyRefused

SIDE_FILES = ("-wal", "-shm", "-journal")
LOCK_FILES = ("-turn", "-lock")
"""Those of a store stay: whoever waits at one must not be left waiting at a file that is gone."""
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EXDEV, errno.EMLINK}


@contextmanager
def placed(path: Path, *, replace: bool) -> Iterator[Path]:
    """Where to write, for the owner's eyes only; leaving normally flushes it and gives it its name.

    Whoever is killed meanwhile leaves a file that nobody takes for the real one, and that the next one begins anew.
    """
    if not replace:
        refuse_existing(path)
    partial = path.with_name(f".{path.name}.partial")
    with told(path):
        _let_go_of_named(partial)
        file = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _alone(file, partial)
            os.ftruncate(file, 0)
            os.fchmod(file, 0o600)
            remove(partial, SIDE_FILES)
            try:
                yield partial
                os.fsync(file)
                _name(partial, path, replace=replace)
            finally:
                remove(partial, ("", *SIDE_FILES, *LOCK_FILES))
        finally:
            os.close(file)


def refuse_existing(path: Path) -> None:
    """A log of a file that is gone would be played into the new one, so it counts as well."""
    for name in (path.name, *(path.name + ending for ending in SIDE_FILES)):
        if path.with_name(name).exists():
            raise CopyRefused(f"{path.with_name(name)} exists: --replace takes its place")


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Say which file could not be written, and why."""
    try:
        yield
    except apsw.FullError as error:
        raise CopyRefused(f"cannot write {path}: no space left on the disk") from error
    except (apsw.CantOpenError, apsw.IOError, apsw.ReadOnlyError, apsw.CorruptError, apsw.NotADBError) as error:
        raise CopyRefused(f"cannot make {path}: {error}") from error
    except OSError as error:
        raise CopyRefused(f"cannot write {error.filename or path}: {error.strerror or error}") from error


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder of one's own, gone afterwards."""
    with told(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        yield Path(folder)


def _let_go_of_named(partial: Path) -> None:
    """A file that has two names, because somebody was killed between giving the new and taking the old, is complete."""
    with suppress(FileNotFoundError):
        if partial.stat().st_nlink > 1:
            partial.unlink()


def _alone(file: int, partial: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CopyRefused(f"somebody else is writing {partial} just now") from error


def _name(partial: Path, path: Path, *, replace: bool) -> None:
    """Give the file its name, and make sure that it keeps it."""
    if replace:
        remove(path, SIDE_FILES)
        partial.replace(path)
    else:
        try:
            os.link(partial, path)  # unlike a rename it never takes the place of another
        except FileExistsError as error:
            raise CopyRefused(f"{path} exists: --replace takes its place") from error
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            refuse_existing(path)
            partial.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove(path: Path, endings: tuple[str, ...]) -> None:
    """Remove those of a file's neighbours that are there; an empty ending is the file itself."""
    for ending in endings:
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).unlink()
