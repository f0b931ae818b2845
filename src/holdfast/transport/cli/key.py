"""The key: from a file of one's own, or from the environment; never from an argument, which others can see."""

from __future__ import annotations

import os
import sys

from holdfast.transport.cli.sender import BadAddress


def read_key(path: str | None) -> str | None:
    """The key in a file, or on stdin for `-`; without a path the one in HOLDFAST_API_KEY, if there is one."""
    if path is None:
        return _clean(os.environ.get("HOLDFAST_API_KEY", "")) or None
    return _clean(sys.stdin.readline() if path == "-" else read_private(path))


def read_private(path: str) -> str:
    """What is in a file that nobody else can read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(file, encoding="utf-8") as opened:
            if os.fstat(file).st_mode & 0o077:
                raise BadAddress(f"others can read {path}: chmod 600 it")
            return opened.read()
    except OSError as error:
        raise BadAddress(f"cannot read the key in {path}: {error.strerror}") from error


def _clean(text: str) -> str:
    key = text.strip()
    if not key.isascii() or not (key.isprintable()):
        raise BadAddress("a key is one line of visible characters")
    return key
