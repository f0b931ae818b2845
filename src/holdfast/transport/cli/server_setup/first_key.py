"""Writes the first key of a new store to a private file when the server was not started on a terminal."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.settings import Settings, default_store, sqlite_path


def first_key_path(settings: Settings) -> Path:
    """Beside the file of the store; for other stores in the user's state folder."""
    store = settings.store if settings.store.startswith("sqlite:///") else default_store()
    path = sqlite_path(store)
    return path.with_name(f"first-key-of-{path.name}.txt").absolute()


def write_first_key(path: Path, key: str) -> None:
    """Write the key to a new file of mode 0600; a file that is there belongs to a former store and is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(f"{key}\n")
