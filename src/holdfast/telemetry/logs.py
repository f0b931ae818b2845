"""One line a record, for people or for machines: short, escaped, and without anything that proves something."""

from __future__ import annotations

import logging
import re
import sys
import time
import traceback
from typing import Any, TextIO

import msgspec

LONGEST = 256
JSON, TEXT = "json", "text"
FORMATS = (JSON, TEXT)
LEVELS = ("debug", "info", "warning", "error")
FIELDS = ("request_id", "account", "subject", "operation", "status", "duration_seconds")
"""What a record may say about the request it belongs to: given as `extra`."""
FRAMES = 20

_SECRET = re.compile(
    r"""\b(?P<key>hf_(?:live|test)_|whsec_)[A-Za-z0-9+/=_-]*(?P<key_end>[A-Za-z0-9+/=_-]{4})
    |\b(?P<uuid>[0-9a-f]{4})[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{8}(?P<uuid_end>[0-9a-f]{4})\b
    |\b(?P<bearer>Bearer[ ])\S*?(?P<bearer_end>\S{0,4})(?=[\s'",;]|$)
    |(?P<place>//)[^/@\s]+@""",
    re.VERBOSE | re.IGNORECASE,
)
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that steer a terminal, hide, or turn the direction of what follows."""


def set_up(form: str | None, level: str, stream: TextIO = sys.stderr) -> None:
    """Let everything Holdfast logs go there; a form of None is text on a terminal and JSON elsewhere."""
    lines = form == JSON or (form is None and not stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if lines else PlainLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # Others' libraries tell of every request they send; only Holdfast's own rooms are asked to say more.
    logging.getLogger("holdfast").setLevel(level.upper())


def shortened(text: str) -> str:
    """What may stand in a line of the log: secrets by their beginning and end, nothing unseen, not too long."""
    return escaped(_SECRET.sub(_hidden, text))


def escaped(text: str) -> str:
    """The same for what is known to be no secret."""
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", cut)


def _hidden(found: re.Match[str]) -> str:
    if found["place"]:
        return "//...@"
    begin = found["key"] or found["uuid"] or found["bearer"] or ""
    end = found["key_end"] or found["uuid_end"] or found["bearer_end"] or ""
    return f"{begin}...{end}"


def told(record: logging.LogRecord) -> dict[str, Any]:
    """A record as what may be said of it."""
    line: dict[str, Any] = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": shortened(record.getMessage()),
    }
    for name in FIELDS:
        value = getattr(record, name, None)
        if value is not None:
            line[name] = escaped(value) if isinstance(value, str) else value
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        line["error"] = shortened(f"{type(error).__name__}: {error}")
        # Where it happened, never what was there: a line of the traceback's source or a local may hold a payload.
        frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
        line["traceback"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return line


class JsonLines(logging.Formatter):
    """For machines."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        return msgspec.json.encode(told(record)).decode()


class PlainLines(logging.Formatter):
    """For people at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Level, room and message, then what else there is."""
        line = told(record)
        parts = [f"{line['level'].upper()} {line['logger']}: {line['message']}"]
        parts += [f"{name}={line[name]}" for name in FIELDS if name in line]
        if "error" in line:
            parts.append(line["error"])
            parts += [f"\n    {frame}" for frame in line["traceback"]]
        return " ".join(parts)
