"""Durations on the command line: plain seconds, or numbers with units."""

from __future__ import annotations

import re

from holdfast.operations.bound_kinds import Range

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)"
EXPLAINED = "DURATION: seconds, or a number with ms, s, m, h or d, such as 90, 90s, 5m, 1.5h or 1h30m."
_EXPECTED = "expected seconds, or a duration such as 90s, 5m or 1h"


def parse_duration(text: str) -> float:
    """Seconds of `90`, `0.5`, `90s`, `5m`, `1h30m` or `500ms`."""
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", text, re.ASCII):
        return float(text)
    if not re.fullmatch(f"({_PART})+", text, re.ASCII):
        raise ValueError(_EXPECTED)
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text))
    return round(seconds, 3)  # to the millisecond, so that 1.1s is not 1.1000000000000001


def parse_whole_seconds(text: str) -> int:
    """The same, where the server takes whole seconds only."""
    seconds = parse_duration(text)
    if not seconds.is_integer():
        raise ValueError("expected whole seconds")
    return int(seconds)


def parse_done_for(text: str) -> object:
    """Whole seconds, or `forever`."""
    if text != "forever":
        return parse_whole_seconds(text)
    import msgspec  # every start of the program imports this module, and few verbs need msgspec

    return msgspec.Raw(b"null")


def parse_within(text: str, bound: Range) -> int:
    """Whole seconds within a bound."""
    seconds = parse_whole_seconds(text)
    if not bound.allows(seconds):
        raise ValueError(f"expected {bound} seconds")
    return seconds
