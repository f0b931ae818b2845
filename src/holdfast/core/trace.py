"""Where a request belongs in a trace: the W3C `traceparent`, kept as text and never trusted to be one."""

from __future__ import annotations

import re

_FORM = re.compile(r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}(?P<more>-.*)?")


def traceparent(text: str) -> str:
    """The text, if it names a trace and a span; else nothing. What a later version adds behind it is left off."""
    found = _FORM.fullmatch(text)
    if found is None or found["version"] == "ff" or (found["more"] and found["version"] == "00"):
        return ""
    if not found["trace"].strip("0") or not found["span"].strip("0"):
        return ""
    return text[: found.start("more")] if found["more"] else text
