"""W3C trace context of a request: a checked `traceparent` header."""

from __future__ import annotations

import re

_FORM = re.compile(r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}(?P<more>-.*)?")


def traceparent(text: str) -> str:
    """The header if it is valid, else an empty string. Fields added by later versions are removed."""
    found = _FORM.fullmatch(text)
    if found is None or found["version"] == "ff" or (found["more"] and found["version"] == "00"):
        return ""
    if not found["trace"].strip("0") or not found["span"].strip("0"):
        return ""
    return text[: found.start("more")] if found["more"] else text
