"""Verbs `backup`, `restore` and `migrate`: copies of whole stores."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.backup.backup import backup
from holdfast.backup.endpoint import CopyRefused
from holdfast.backup.migrate import migrate
from holdfast.backup.restore import restore
from holdfast.core.errors import HoldfastError
from holdfast.settings import BadSettings, Settings, load
from holdfast.store.contract import UnusableStore
from holdfast.transport.cli.display.answers import print_answer
from holdfast.transport.cli.output import escape, print_message
from holdfast.transport.cli.verbs.verb import Invocation
from holdfast.transport.times import rfc3339

OK, FAILED, CONFIGURATION = 0, 1, 2

_KEYS_UNKNOWN = "holdfast: keys revoked or rotated since the backup was taken work again: check `holdfast key ls`"


class Progress:
    """Progress bar on stderr; nothing if that is no terminal."""

    WIDTH = 30
    EVERY_SECONDS = 0.1

    def __init__(self) -> None:
        self._is_visible = sys.stderr.isatty()
        self._next_update = 0.0
        self._is_drawn = False

    def __call__(self, what: str, done: int, total: int) -> None:
        """Draw the bar; `total` is 0 if it is not known."""
        now = time.monotonic()
        if not self._is_visible or (now < self._next_update and done != total):
            return
        self._next_update, self._is_drawn = now + self.EVERY_SECONDS, True
        filled = self.WIDTH * done // total if total else 0
        bar = f"[{'#' * filled}{'.' * (self.WIDTH - filled)}] {100 * done // total:3} %" if total else f"{done:,}"
        print(f"\r\x1b[K{what} {bar}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Remove the bar."""
        if self._is_drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def run_backup(invocation: Invocation) -> int:
    """`backup`."""
    return _copy(invocation, _backup)


def run_restore(invocation: Invocation) -> int:
    """`restore`."""
    return _copy(invocation, _restore)


def run_migrate(invocation: Invocation) -> int:
    """`migrate`."""
    return _copy(invocation, _migrate)


def _copy(invocation: Invocation, copy: Callable[[dict[str, Any], Progress], dict[str, Any]]) -> int:
    """Copy with a progress bar; the exit status: 0 success, 1 failed and nothing changed, 2 wrong settings."""
    progress = Progress()
    try:
        answer = copy(invocation.arguments, progress)
    except BadSettings as error:
        for problem in error.problems:
            print_message(f"holdfast: {problem}")
        return CONFIGURATION
    except (CopyRefused, HoldfastError, UnusableStore) as error:
        progress.close()
        print_message(f"holdfast: {escape(str(error))}")
        return FAILED
    progress.close()
    print_answer(answer, invocation)
    sys.stdout.flush()
    return OK


def _backup(arguments: dict[str, Any], progress: Progress) -> dict[str, Any]:
    path = Path(arguments["file"])
    header = backup(_settings(arguments["store"]), path, progress, **_options(arguments))
    _print_damaged(header.damaged)
    return {"file": str(path), "bytes": path.stat().st_size} | _header_fields(header)


def _restore(arguments: dict[str, Any], progress: Progress) -> dict[str, Any]:
    done = restore(_settings(arguments["to"]), Path(arguments["file"]), progress, **_options(arguments))
    _print_damaged(done.damaged)
    if done.keys_unknown:
        print_message(_KEYS_UNKNOWN)
    ended = {"keys_ended": done.keys_ended, "leases_ended": done.leases_ended}
    return {"tokens_after": done.token} | ended | _header_fields(done.backup) | {"damaged": done.damaged}


def _print_damaged(rows: list[str]) -> None:
    for row in rows:
        print_message(f"holdfast: damaged row: {escape(row)}")


def _migrate(arguments: dict[str, Any], progress: Progress) -> dict[str, Any]:
    source, target = _settings(arguments["store"]), _settings(arguments["to"])
    counts = migrate(source, target, progress, check=not arguments["no_verify"])
    return {"records": sum(counts.values()), "counts": counts}


def _settings(store: str | None) -> Settings:
    return load({"store": store})[0]


def _options(arguments: dict[str, Any]) -> dict[str, bool]:
    return {"replace": bool(arguments["replace"]), "check": not arguments["no_verify"]}


def _header_fields(header: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(header)
    return fields | {"taken_at": rfc3339(header.taken_at)}
