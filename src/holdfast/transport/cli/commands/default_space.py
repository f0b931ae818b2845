"""The name that `init` gives to the space of a repository."""

from __future__ import annotations

import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*/(?P<path>.+)")
_SCP = re.compile(r"[^/:]+:(?P<path>.+)")
"""git@host:owner/name.git"""
_GIT_SECONDS = 5.0


def default_space(folder: Path) -> str:
    """Origin's owner/name, with the folder's path if it is not the top one; without an origin, the folder's name."""
    origin = _git(folder, "config", "--get", "remote.origin.url")
    below = _git(folder, "rev-parse", "--show-prefix").strip("/")
    name = name_of(origin) if origin else ""
    parts = [name, below] if name else [folder.resolve().name]
    text = unicodedata.normalize("NFC", "/".join(part for part in parts if part))
    return text if text.isprintable() and text.strip() else "repository"


def name_of(origin: str) -> str:
    """`owner/name` in the address of a repository. A path on this machine has no owner: its last part."""
    match = _URL.fullmatch(origin) or _SCP.fullmatch(origin)
    path = match["path"] if match else origin
    name = path.strip("/").removesuffix(".git").strip("/")
    return name if match and not origin.startswith("file:") else name.rpartition("/")[2]


def _git(folder: Path, *words: str) -> str:
    """The output of a git command; empty if it fails, or if there is no git."""
    program = shutil.which("git")
    if program is None:
        return ""
    command = [program, "-C", str(folder), *words]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_GIT_SECONDS)  # noqa: S603
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return ran.stdout.strip()
