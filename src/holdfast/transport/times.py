"""Times as the wire shows them: RFC 3339, UTC, with Z, as many digits as are exact."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from holdfast.core.row import Instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(instant: Instant) -> str:
    """2026-08-10T12:00:00.123456Z, or with 3 or no digits where that is exact."""
    moment = (_EPOCH + timedelta(microseconds=instant)).replace(tzinfo=None)
    exact = instant % 1_000_000
    return moment.isoformat(timespec="microseconds" if exact % 1000 else "milliseconds" if exact else "seconds") + "Z"


def rfc3339_or_none(instant: Instant | None) -> str | None:
    """The same, for a time that may be absent."""
    return None if instant is None else rfc3339(instant)
