"""`holdfast backup`, `restore` and `migrate`: whole stores on the move."""

from __future__ import annotations

import sys
from collections.abc import Mapping
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
from holdfast.transport.cli.output import escape, say, show
from holdfast.transport.cli.progress import Progress
from holdfast.transport.cli.verbs.verb import Verb
from holdfast.transport.times import rfc3339

FINE, FAILED, CONFIGURATION = 0, 1, 2

_KEYS_UNKNOWN = "holdfast: keys revoked or rotated since the backup was taken work again: see `holdfast key ls`"


def run(verb: Verb, arguments: Mapping[str, Any]) -> int:
    """The exit status: 0 if it is done, 1 if not, and then nothing was changed; 2 if it was asked wrongly."""
    progress = Progress()
    try:
        answer = _DOERS[verb.name](arguments, progress)
    except BadSettings as error:
        for problem in error.problems:
            say(f"holdfast: {problem}")
        return CONFIGURATION
    except (CopyRefused, HoldfastError, UnusableStore) as error:
        progress.close()
        say(f"holdfast: {escape(str(error))}")
        return FAILED
    progress.close()
    show(answer, verb, arguments.get("output") or "text")
    sys.stdout.flush()
    return FINE


def _backup(arguments: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    path = Path(arguments["file"])
    header = backup(_settings(arguments["store"]), path, tell, **_how(arguments))
    return {"file": str(path), "bytes": path.stat().st_size} | _header(header)


def _restore(arguments: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    done = restore(_settings(arguments["to"]), Path(arguments["file"]), tell, **_how(arguments))
    if done.keys_unknown:
        say(_KEYS_UNKNOWN)
    return {"tokens_after": done.token, "keys_ended": done.keys_ended} | _header(done.backup)


def _migrate(arguments: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    counts = migrate(_settings(arguments["store"]), _settings(arguments["to"]), tell, check=not arguments["no_verify"])
    return {"records": sum(counts.values()), "counts": counts}


_DOERS = {"backup": _backup, "restore": _restore, "migrate": _migrate}


def _settings(store: str | None) -> Settings:
    return load({"store": store})[0]


def _how(arguments: Mapping[str, Any]) -> dict[str, bool]:
    return {"replace": bool(arguments["replace"]), "check": not arguments["no_verify"]}


def _header(header: Any) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(header)
    return shown | {"taken_at": rfc3339(header.taken_at)}
