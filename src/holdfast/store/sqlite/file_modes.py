"""Keeps the files of a store private: they hold the hashes of all keys, and everything that agents wrote."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

ENDINGS = ("", "-wal", "-shm", "-turn", "-lock")
PRIVATE, OTHERS = 0o600, 0o077

log = logging.getLogger("holdfast.store")


def make_private(path: Path) -> None:
    """Take the rights of other users away from the files of a store that exist; warn about files of another owner."""
    for ending in ENDINGS:
        file = path.with_name(path.name + ending)
        try:
            found = file.lstat()
            if not stat.S_ISREG(found.st_mode) or not found.st_mode & OTHERS:
                continue
            if found.st_uid != os.geteuid():
                log.warning("other users can read or write %s, which is not yours: its owner must run chmod 600", file)
                continue
            file.chmod(PRIVATE)
        except FileNotFoundError:
            continue
        log.warning("other users could read or write %s: its mode is 0600 now", file)
