"""Labels for durations, documents and event kinds, and the PATH that example commands need."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import msgspec

from holdfast.addresses import is_loopback
from holdfast.core.row import SECOND, Instant

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_SHOWN_UNITS = 2
MAX_SUMMARY, MAX_VALUE = 100, 40
"""Characters of a document's summary, and of one value in it."""


def duration(span: Instant) -> str:
    """The two largest units of a duration: 1 h 5 min, 12 s."""
    left = max(span, 0) // SECOND
    parts: list[str] = []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
        if len(parts) == _SHOWN_UNITS:
            break
    return " ".join(part for part in parts if not part.startswith("0 ")) or "0 s"


def clock(instant: Instant) -> str:
    """The time of the day in UTC: 08:15."""
    return time.strftime("%H:%M", time.gmtime(instant // SECOND))


def summarize(document: str) -> str:
    """A JSON document in a few words: `page: 7, repository: acme/shop, files: [3]`."""
    try:
        value = msgspec.json.decode(document)
    except (msgspec.DecodeError, RecursionError):
        return _cut(document, MAX_SUMMARY)
    if not isinstance(value, dict):
        return _cut(_in_short(value), MAX_SUMMARY)
    words, size = [], 0
    for name, each in value.items():
        words.append(f"{_cut(name, MAX_VALUE)}: {_in_short(each)}")
        size += len(words[-1]) + 2
        if size > MAX_SUMMARY:
            break
    return _cut(", ".join(words), MAX_SUMMARY)


def _in_short(value: object) -> str:
    """A JSON value: a list or an object only with its size."""
    if isinstance(value, list):
        return f"[{len(value)}]"
    if isinstance(value, dict):
        return f"{{{len(value)}}}"
    if isinstance(value, str):
        return _cut(value, MAX_VALUE)
    return _cut(msgspec.json.encode(value).decode(), MAX_VALUE)


def _cut(text: str, limit: int) -> str:
    line = " ".join(text[: limit + 1].split())
    return line if len(text) <= limit else line[: limit - 1] + "…"


def path_for_commands(host: str) -> str:
    """The PATH assignment a shell needs to find `holdfast`; empty if it is on the PATH or the server is remote."""
    if shutil.which("holdfast") is not None or not is_loopback(host):
        return ""
    return f"PATH={Path(sys.executable).parent}:$PATH "


def event_label(kind: str) -> tuple[str, str]:
    """(what happened, CSS class of its symbol) for an event kind."""
    verb = kind.partition(".")[2] or kind
    return _WORDS.get(kind, verb.replace("_", " ")), _MARKS.get(verb, "changed")


_WORDS = {
    "task.dependency_met": "dependency met",
    "reservation.reduced": "gave back paths",
    "reservation.enlarged": "added paths",
    "reservation.left": "stopped waiting",
    "reservation.forced": "taken away",
    "reservation.undelivered": "not delivered",
    "reservation.reissued": "new lease id",
    "reservation.restored": "ended by restore",
    "reservation.extended": "given more time",
}
"""Verbs that need other words for a reader."""
_MARKS = {
    "claimed": "held", "renewed": "held", "opened": "held", "resumed": "held", "created": "waiting",
    "released": "free", "completed": "done", "done": "done", "expired": "lost", "forced": "lost", "undelivered": "lost",
    "session_ended": "lost", "failed": "lost", "dead_lettered": "lost", "deleted": "free", "cancelled": "free",
    "offered": "held", "offer_withdrawn": "held", "handed_over": "free",
    "requeued": "waiting", "resolved": "done", "rotated": "held", "revoked": "lost", "reserved": "held",
    "waiting": "waiting", "enlarged": "held", "reduced": "free", "left": "free", "reissued": "held", "restored": "lost",
    "asked": "waiting", "answered": "done", "withdrawn": "free", "extended": "held", "dependency_met": "waiting",
}  # fmt: skip
