"""Runs git and returns its output."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_SECONDS = 5.0


def ask_git(folder: Path, *words: str) -> str | None:
    """The output of a git command; None if it fails, or if there is no git."""
    program = shutil.which("git")
    if program is None:
        return None
    command = [program, "-C", str(folder), *words]
    try:
        ran = subprocess.run(command, capture_output=True, check=True, timeout=_SECONDS)  # noqa: S603
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return os.fsdecode(ran.stdout)
