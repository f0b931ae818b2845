"""Progress that a holder reports with a heartbeat: JSON, shown as a bar while it holds the lease.

A holder may send any JSON. These forms have a known meaning: a number from 0 to 1, `{"percent": 40}` and
`{"done": 2, "of": 5}`, the last two with or without a `message`, and a string, which is a message alone.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import msgspec

WHOLE = 100
MESSAGE_LENGTH = 160
"""A message is cut at this length: with every character escaped it still fits into the bound of `progress`."""
ROUNDING = 0.005
"""A sum of fractions may miss 0 or 1 by less than half a percent."""


class Progress(msgspec.Struct, frozen=True):
    """The part of the work that is done, and what the holder does now."""

    percent: int | None = None
    """From 0 to 100; None if it is not known."""
    message: str | None = None


def progress_document(fraction: float, message: str | None = None) -> dict[str, Any]:
    """The JSON for a part of the work, from 0 to 1."""
    if not -ROUNDING < fraction < 1 + ROUNDING:
        raise ValueError(f"progress is a number from 0 to 1, not {fraction}")
    percent = {"percent": round(fraction * WHOLE)}
    return percent if message is None else percent | {"message": message.replace("\0", "")[:MESSAGE_LENGTH]}


def read_progress(text: str | None) -> Progress | None:
    """The progress in stored JSON; None if there is none, or in no known form."""
    try:
        value = None if text is None else msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    if isinstance(value, str):
        return Progress(message=value)
    if not isinstance(value, dict):
        percent, message = _percent(value, 1), None
    else:
        percent = _percent(value.get("percent"), WHOLE)
        if percent is None:
            percent = _percent(value.get("done"), value.get("of"))
        message = value.get("message") if isinstance(value.get("message"), str) else None
    return None if percent is None and message is None else Progress(percent, message)


def _percent(done: object, of: object) -> int | None:
    """The part in percent, rounded; None unless these are numbers and `done` is a part of `of`."""
    if not _is_number(done) or not _is_number(of):
        return None
    return round(done / of * WHOLE) if 0 <= done <= of and of > 0 else None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
