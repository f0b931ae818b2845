"""The kinds of bounds that a request field can have."""

from __future__ import annotations

from typing import NamedTuple

KB = 1024


class Range(NamedTuple):
    """A number from `least` to `most`; `if_omitted` if the field is left out."""

    least: int
    most: int
    if_omitted: int | None = None

    @property
    def default(self) -> int:
        """The value of an omitted field; an error for a bound without one."""
        assert self.if_omitted is not None
        return self.if_omitted

    def allows(self, value: float | None) -> bool:
        """Whether a value is within the range; None is."""
        return value is None or self.least <= value <= self.most

    def __str__(self) -> str:
        return f"{self.least} to {self.most}"

    def with_default(self) -> str:
        """For help texts: `1 to 3600 (120)`."""
        return f"{self} ({self.default})"


class Length(NamedTuple):
    """A string of at most `most` characters."""

    most: int
    least: int = 0

    def __str__(self) -> str:
        return f"{self.least} to {self.most} characters" if self.least else f"at most {self.most} characters"


class JsonSize(NamedTuple):
    """A JSON value of at most `size` bytes when written compactly, nested at most `depth` levels."""

    size: int
    depth: int = 32

    def __str__(self) -> str:
        return f"at most {self.size // KB} KB of JSON, {self.depth} levels"


class Count(NamedTuple):
    """A list of at most `most` entries."""

    most: int
    least: int = 0

    def __str__(self) -> str:
        return f"{self.least} to {self.most} entries" if self.least else f"at most {self.most} entries"


Bound = Range | Length | JsonSize | Count


class Rate(NamedTuple):
    """At most `requests` in `seconds`."""

    requests: int
    seconds: int
