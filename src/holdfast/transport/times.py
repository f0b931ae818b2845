"""Times on the wire: RFC 3339, UTC, with Z and as many digits as are exact."""

from __future__ import annotations

import time
from datetime import datetime
from functools import lru_cache

from holdfast.core.row import SECOND, Instant

MILLISECOND = SECOND // 1000


def rfc3339(instant: Instant) -> str:
    """2026-08-10T12:00:00.123456Z, or with 3 or no digits where that is exact."""
    seconds, rest = divmod(instant, SECOND)
    if rest % MILLISECOND:
        return f"{_format_seconds(seconds)}.{rest:06d}Z"
    return f"{_format_seconds(seconds)}.{rest // MILLISECOND:03d}Z" if rest else f"{_format_seconds(seconds)}Z"


def rfc3339_offset(instant: Instant) -> str:
    """The same with +00:00 for Z."""
    return rfc3339(instant)[:-1] + "+00:00"


def milliseconds(instant: Instant) -> str:
    """2026-08-10T12:00:00.123Z, always with three digits."""
    seconds, rest = divmod(instant, SECOND)
    return f"{_format_seconds(seconds)}.{rest // MILLISECOND:03d}Z"


def milliseconds_or_none(instant: Instant | None) -> str | None:
    """The same, for a time that may be absent."""
    return None if instant is None else milliseconds(instant)


def rfc3339_or_none(instant: Instant | None) -> str | None:
    """The same, for a time that may be absent."""
    return None if instant is None else rfc3339(instant)


@lru_cache(maxsize=4096)
def _format_seconds(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def wall_clock() -> Instant:
    """The time of this machine; close enough to the store's clock to decide which plan is in force."""
    return time.time_ns() // 1000


def parse(text: str) -> Instant | None:
    """An ISO 8601 time with an offset, or None if the text is not one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    try:
        return round(moment.timestamp() * SECOND)
    except (ValueError, OverflowError):
        return None
