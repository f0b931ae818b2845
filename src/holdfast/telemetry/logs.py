"""Log output: one line per record, as text or JSON, shortened, escaped and with secrets redacted."""

from __future__ import annotations

import logging
import re
import sys
import time
import traceback
from typing import Any, TextIO

import msgspec

MAX_TEXT = 256
JSON, TEXT = "json", "text"
FORMATS = (JSON, TEXT)
LEVELS = ("debug", "info", "warning", "error")
SUBJECT = "subject"
FIELDS = ("request_id", "account", SUBJECT, "operation", "status", "duration_seconds")
"""Fields of the request that a record may carry, passed as `extra`."""
MAX_FRAMES = 20

_SECRET = re.compile(
    r"""\b(?P<key>hf_(?:live|test)_|whsec_)[A-Za-z0-9+/=_-]*(?P<key_end>[A-Za-z0-9+/=_-]{4})
    |\b(?P<uuid>[0-9a-f]{4})[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{8}(?P<uuid_end>[0-9a-f]{4})\b
    |\b(?P<bearer>Bearer[ ])\S*?(?P<bearer_end>\S{0,4})(?=[\s'",;]|$)
    |(?P<userinfo>//)[^/@\s]+@""",
    re.VERBOSE | re.IGNORECASE,
)
_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that control a terminal, are invisible, or change the text direction."""


def set_up(form: str | None, level: str, stream: TextIO = sys.stderr) -> None:
    """Configure logging; a form of None means text on a terminal and JSON elsewhere."""
    is_json = form == JSON or (form is None and not stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if is_json else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # Third-party libraries log every request they send, so the level applies to Holdfast's own loggers only.
    logging.getLogger("holdfast").setLevel(level.upper())


def redact(text: str) -> str:
    """Text for the log: secrets reduced to their first and last characters, escaped and shortened."""
    return escape(_SECRET.sub(_redact_secret, text))


def escape(text: str) -> str:
    """Text without secrets for the log: escaped and shortened."""
    cut = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
    return _CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", cut)


def _redact_secret(found: re.Match[str]) -> str:
    if found["userinfo"]:
        return "//...@"
    begin = found["key"] or found["uuid"] or found["bearer"] or ""
    end = found["key_end"] or found["uuid_end"] or found["bearer_end"] or ""
    return f"{begin}...{end}"


def record_fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a record, redacted and escaped."""
    line: dict[str, Any] = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": redact(record.getMessage()),
    }
    for name in FIELDS:
        value = getattr(record, name, None)
        if value is not None:
            # The subject is a part of the path, where a caller may have put a key or a lease id.
            clean = redact if name == SUBJECT else escape
            line[name] = clean(value) if isinstance(value, str) else value
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        line["error"] = redact(f"{type(error).__name__}: {error}")
        # Only file, line and function: a source line or a local variable may contain a payload.
        frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
        line["traceback"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return line


class JsonFormatter(logging.Formatter):
    """Formats records as JSON, for log collectors."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        return msgspec.json.encode(record_fields(record)).decode()


class TextFormatter(logging.Formatter):
    """Formats records as text, for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Level, logger and message, then the request's fields and the error."""
        line = record_fields(record)
        parts = [f"{line['level'].upper()} {line['logger']}: {line['message']}"]
        parts += [f"{name}={line[name]}" for name in FIELDS if name in line]
        if "error" in line:
            parts.append(line["error"])
            parts += [f"\n    {frame}" for frame in line["traceback"]]
        return " ".join(parts)
