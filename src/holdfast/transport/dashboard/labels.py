"""How the dashboard says things: spans of time, events, outcomes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from holdfast.addresses import is_loopback
from holdfast.core.row import SECOND, Instant

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def duration(span: Instant) -> str:
    """The two largest units of a span: 1 h 5 min, 12 s."""
    left = max(span, 0) // SECOND
    told: list[str] = []
    for size, unit in _UNITS:
        many, left = divmod(left, size)
        if many or told:
            told.append(f"{many} {unit}")
        if len(told) == 2:  # noqa: PLR2004 - the two largest
            break
    return " ".join(part for part in told if not part.startswith("0 ")) or "0 s"


def way_to_program(host: str) -> str:
    """What a shell must be told to find `holdfast`: nothing if it is on the way, or if visitors sit elsewhere."""
    if shutil.which("holdfast") is not None or not is_loopback(host):
        return ""
    return f"PATH={Path(sys.executable).parent}:$PATH "


def event_words(kind: str) -> tuple[str, str]:
    """(what happened, which mark stands before it) for the kind of an event."""
    verb = kind.partition(".")[2] or kind
    return verb.replace("_", " "), _MARKS.get(verb, "changed")


_MARKS = {
    "claimed": "held", "renewed": "held", "opened": "held", "resumed": "held", "created": "waiting",
    "released": "free", "completed": "done", "expired": "lost", "forced": "lost", "undelivered": "lost",
    "session_ended": "lost", "failed": "lost", "dead_lettered": "lost", "deleted": "free", "cancelled": "free",
    "requeued": "waiting", "resolved": "done", "rotated": "held", "revoked": "lost",
}  # fmt: skip
