"""Files that this process failed to flush to disk: it writes to them no more.

After a failed flush the kernel may drop what it could not write and report success for the next flush, so no later
commit or checkpoint of this process can be trusted. A new process reads the file back and may write again.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from holdfast.core.errors import StoreUnavailable

_FLUSH_ERRORS = {apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC}
_failed_files: set[Path] = set()
"""Kept for the life of the process: a store that is closed and opened again has the same page cache below it."""


def record(path: Path, error: BaseException | None) -> None:
    """Remember the file if the error, or one that caused it, is a failed flush."""
    while error is not None:
        if getattr(error, "extendedresult", None) in _FLUSH_ERRORS:
            _failed_files.add(path)
        error = error.__cause__


def has_failed(path: Path) -> bool:
    """Whether this process failed to flush the file."""
    return path in _failed_files


def check(path: Path) -> None:
    """Refuse to write to a file that this process failed to flush."""
    if path in _failed_files:
        raise StoreUnavailable(
            f"the disk failed to flush {path}, so what it holds is uncertain: restart the server to read it back"
        )
