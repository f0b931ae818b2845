"""Query strings: typed parameters, with every error reported at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl

from holdfast.core.names import is_storable
from holdfast.core.row import Instant
from holdfast.operations.bound_kinds import Range
from holdfast.operations.bounds import QUERY_TEXT
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.parsing import fold_name
from holdfast.transport.http.request import Header, Request
from holdfast.transport.times import parse as parse_time

NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"),)


class Query:
    """Query parameters of one request. camelCase and snake_case are both accepted; unknown parameters are ignored."""

    def __init__(self, request: Request, names: Iterable[str]) -> None:
        pairs = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True, errors="replace")
        documented = {fold_name(name): name for name in names}
        self._values: dict[str, str] = {}
        for name, value in pairs:
            known = documented.get(fold_name(name))
            if known is not None:
                self._values[known] = value
        self._checks = Checks()

    def values(self) -> dict[str, str]:
        """The known parameters as they were sent, for the URL of the next page."""
        return dict(self._values)

    def text(self, name: str) -> str | None:
        """A string; None if it is empty or missing."""
        value = self._values.get(name)
        self._checks.check_text(value, name, QUERY_TEXT)
        return value if value and is_storable(value) else None

    def choice(self, name: str, allowed: Iterable[str]) -> str | None:
        """One of the allowed values, or None if it is missing."""
        value = self._values.get(name)
        listed = ", ".join(allowed)
        self._checks.require(value is None or value in allowed, name, f"`{name}` must be one of {listed}")
        return value

    def number(self, name: str, bound: Range) -> int:
        """An integer within its bound, or the bound's default."""
        text = self._values.get(name, str(bound.default))
        value = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else -1
        self._checks.check_range(value, name, bound)
        return value

    def seconds(self, name: str, bound: Range) -> float:
        """A number of seconds, with or without a fraction."""
        text = self._values.get(name, str(bound.default))
        value = float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,30})?", text) else -1.0
        self._checks.check_range(value, name, bound)
        return value

    def time(self, name: str) -> Instant | None:
        """An ISO 8601 time, or None if it is missing."""
        text = self.text(name)
        if text is None:
            return None
        instant = parse_time(text.replace(" ", "+"))
        self._checks.require(instant is not None, name, f"`{name}` must be an ISO 8601 time with an offset")
        return instant

    def raise_errors(self) -> None:
        """Refuse the request if any parameter was invalid."""
        self._checks.raise_errors()
