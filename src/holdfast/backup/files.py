"""Writing a file under a temporary name until it is complete."""

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

JOURNAL_FILES = ("-wal", "-shm", "-journal")
LOCK_FILES = ("-turn", "-lock")
"""These are never removed from a store: a process may be waiting for a lock on them."""
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EXDEV, errno.EMLINK}


@contextmanager
def write_atomically(path: Path, *, replace: bool) -> Iterator[Path]:
    """A temporary path to write to, readable by its owner only; leaving normally flushes the file and renames it.

    A killed process leaves the temporary file, which is never taken for the real one; the next run overwrites it.
    """
    if not replace:
        refuse_existing(path)
    partial = path.with_name(f".{path.name}.partial")
    with explain_errors(path):
        file = _open_exclusively(partial)
        try:
            os.ftruncate(file, 0)
            os.fchmod(file, 0o600)
            remove(partial, JOURNAL_FILES)
            try:
                yield partial
                os.fsync(file)
                _rename_into_place(partial, path, replace=replace)
            finally:
                remove(partial, ("", *JOURNAL_FILES, *LOCK_FILES))
        finally:
            os.close(file)


def refuse_existing(path: Path) -> None:
    """Refuse if the file, or the journal of a former file, exists: SQLite would apply that journal to the new file."""
    for name in (path.name, *(path.name + ending for ending in JOURNAL_FILES)):
        if path.with_name(name).exists():
            raise CopyRefused(f"{path.with_name(name)} exists: use --replace to overwrite it")


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Raise CopyRefused with the file that could not be written, and why."""
    try:
        yield
    except apsw.FullError as error:
        raise CopyRefused(f"cannot write {path}: no space left on the disk") from error
    except (apsw.CantOpenError, apsw.IOError, apsw.ReadOnlyError, apsw.CorruptError, apsw.NotADBError) as error:
        raise CopyRefused(f"cannot write {path}: {error}") from error
    except OSError as error:
        raise CopyRefused(f"cannot write {error.filename or path}: {error.strerror or error}") from error


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A temporary folder, deleted afterwards."""
    with explain_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        yield Path(folder)


def _open_exclusively(partial: Path) -> int:
    """Open the temporary file for this process alone.

    Between opening and locking, another process may have given the file its final name: then it is no longer ours.
    """
    while True:
        _unlink_completed(partial)
        file = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _lock_exclusively(file, partial)
            with suppress(FileNotFoundError):
                found = partial.stat()
                if os.path.samestat(found, os.fstat(file)) and found.st_nlink == 1:
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _unlink_completed(partial: Path) -> None:
    """Unlink the temporary name of a complete file: a former run was killed after it linked the final name."""
    with suppress(FileNotFoundError):
        if partial.stat().st_nlink > 1:
            partial.unlink()


def _lock_exclusively(file: int, partial: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CopyRefused(f"another process is writing {partial}") from error


def _rename_into_place(partial: Path, path: Path, *, replace: bool) -> None:
    """Give the file its final name, and flush the folder."""
    if replace:
        remove(path, JOURNAL_FILES)
        partial.replace(path)
    else:
        try:
            os.link(partial, path)  # unlike a rename it never overwrites a file
        except FileExistsError as error:
            raise CopyRefused(f"{path} exists: use --replace to overwrite it") from error
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
    """Remove the files with this name and one of these endings, if they exist; an empty ending is the file itself."""
    for ending in endings:
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).unlink()
