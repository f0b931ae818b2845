"""What traces are to the rest of the house: spans that begin, end and point at each other. Nothing of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Protocol

SERVER, PRODUCER, CONSUMER, INTERNAL = "server", "producer", "consumer", "internal"

Attributes = Mapping[str, str | int]


class Span(Protocol):
    """Something under way."""

    @property
    def traceparent(self) -> str:
        """How others name it."""

    def end(self, name: str, attributes: Attributes, *, failed: bool = False) -> None:
        """It is over; what it was is known only now."""


class Traces(Protocol):
    """Where spans go."""

    def begin(self, name: str, kind: str, headers: Mapping[str, str]) -> Span:
        """A span of a request; its caller's context is in the headers, if anywhere."""

    def tell(
        self, name: str, kind: str, *, parent: str, links: Iterable[str], attributes: Attributes, began: int
    ) -> None:
        """A span that is over already; it began then, in nanoseconds. Parent and links are traceparents, or empty."""

    def close(self) -> None:
        """Send what has not been sent."""


class NoOpenTelemetry(Exception):
    """Traces are asked for, but the library that makes them is not installed."""


def check_installed() -> None:
    """Refuse to start without what was asked for."""
    missing = next((name for name in _NEEDED if not _is_there(name)), None)
    if missing is not None:
        raise NoOpenTelemetry(
            f"traces are asked for, but {missing} is not installed: pip install 'holdfast[otel]',"
            " or unset OTEL_EXPORTER_OTLP_ENDPOINT and HOLDFAST_OTLP_ENDPOINT"
        )


_NEEDED = ("opentelemetry.trace", "opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package it belongs to
        return False
