"""What stands behind the question mark: read by name, every mistake told at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl

from holdfast.core.names import storable
from holdfast.core.row import Instant
from holdfast.transport.http.bodies.problem import Checks
from holdfast.transport.http.request import Header, Request
from holdfast.transport.times import parse as parse_time

NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"),)

MAX_TEXT = 1024


class Query:
    """The parameters of one request. Both spellings of a name are understood; unknown ones are ignored."""

    def __init__(self, request: Request, names: Iterable[str]) -> None:
        pairs = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True, errors="replace")
        usual = {name.replace("_", "").lower(): name for name in names}
        self._values: dict[str, str] = {}
        for name, value in pairs:
            known = usual.get(name.replace("_", "").lower())
            if known is not None:
                self._values[known] = value
        self._checks = Checks()

    def given(self) -> dict[str, str]:
        """What was sent, for the address of the next page."""
        return dict(self._values)

    def text(self, name: str) -> str | None:
        """A text; an empty one is as good as none."""
        value = self._values.get(name)
        self._checks.text(value, name, MAX_TEXT)
        return value if value and storable(value) else None

    def choice(self, name: str, words: Iterable[str]) -> str | None:
        """One of a few words."""
        value = self._values.get(name)
        listed = ", ".join(words)
        self._checks.that(value is None or value in words, name, f"`{name}` is one of {listed}")
        return value

    def number(self, name: str, least: int, most: int, *, default: int) -> int:
        """A whole number within its bounds."""
        text = self._values.get(name, str(default))
        value = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else -1
        self._checks.that(least <= value <= most, name, f"`{name}` is {least} to {most}")
        return value

    def seconds(self, name: str, most: int) -> float:
        """A time to wait, from 0 up."""
        text = self._values.get(name, "0")
        value = float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,30})?", text) else -1.0
        self._checks.that(0 <= value <= most, name, f"`{name}` is 0 to {most}")
        return value

    def time(self, name: str) -> Instant | None:
        """An ISO 8601 time."""
        text = self.text(name)
        if text is None:
            return None
        instant = parse_time(text.replace(" ", "+"))
        self._checks.that(instant is not None, name, f"`{name}` is an ISO 8601 time with its offset")
        return instant

    def done(self) -> None:
        """Refuse if anything was wrong."""
        self._checks.done()
