"""Durations and times in words, for people: `38 s`, `2 min ago`, `in 5 min`."""

from __future__ import annotations

import time
from datetime import datetime

_UNITS = ((172_800, 86_400, "d"), (7_200, 3_600, "h"), (120, 60, "min"), (0, 1, "s"))
"""From how many seconds on a unit is used, its length in seconds, and its name."""


def span(seconds: float) -> str:
    """A duration in whole units of one kind, rounded down."""
    length, unit = next((length, unit) for least, length, unit in _UNITS if max(seconds, 0) >= least)
    return f"{int(max(seconds, 0) // length)} {unit}"


def relative(text: str, now: float | None = None) -> str:
    """How long ago an RFC 3339 time was, or how soon it will be, by the clock of this machine; other text as it is."""
    moment = timestamp(text)
    if moment is None:
        return text
    ago = (time.time() if now is None else now) - moment
    if abs(ago) < 1:
        return "now"
    return f"{span(ago)} ago" if ago > 0 else f"in {span(-ago)}"


def timestamp(text: str) -> float | None:
    """Seconds since 1970 of an RFC 3339 time, or None."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment.timestamp()


def time_of_day(moment: float) -> str:
    """The time by the clock and in the time zone of this machine: 14:05:09."""
    return time.strftime("%H:%M:%S", time.localtime(moment))


def is_time(field: str) -> bool:
    """Whether a field of the API has a time, by its name."""
    return field in {"at", "until"} or field.endswith(("_at", "At", "Until"))


def is_countdown(field: str) -> bool:
    """Whether a field has the seconds that are left until something happens."""
    return field.endswith("_in_seconds")
