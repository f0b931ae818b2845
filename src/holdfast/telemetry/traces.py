"""What traces are to the rest of the house: spans that begin, end and point at each other. Nothing of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from holdfast import extras

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
    if not extras.is_installed(extras.OTEL):
        raise NoOpenTelemetry(
            f"traces are asked for, but OpenTelemetry is not installed: {extras.install_command(extras.OTEL)},"
            " or unset OTEL_EXPORTER_OTLP_ENDPOINT and HOLDFAST_OTLP_ENDPOINT"
        )
