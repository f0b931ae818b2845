"""The name that `init` gives to the space of a repository."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from holdfast.transport.cli.git import ask_git

_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*/(?P<path>.+)")
_SCP = re.compile(r"[^/:]+:(?P<path>.+)")
"""git@host:owner/name.git"""


def default_space(folder: Path) -> str:
    """Origin's owner/name, with the folder's path if it is not the top one; without an origin, the folder's name."""
    origin = (ask_git(folder, "config", "--get", "remote.origin.url") or "").strip()
    below = (ask_git(folder, "rev-parse", "--show-prefix") or "").strip().strip("/")
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
