"""Interface of tracing: spans that begin, end and link to each other, without OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from holdfast import extras

SERVER, PRODUCER, CONSUMER, INTERNAL = "server", "producer", "consumer", "internal"

Attributes = Mapping[str, str | int]


class Span(Protocol):
    """A span in progress."""

    @property
    def traceparent(self) -> str:
        """The W3C traceparent of the span."""

    def end(self, name: str, attributes: Attributes, *, failed: bool = False) -> None:
        """End the span with its final name and attributes, which are known only now."""


class Traces(Protocol):
    """A receiver of spans."""

    def begin(self, name: str, kind: str, headers: Mapping[str, str]) -> Span:
        """Begin the span of a request; the headers may contain the caller's trace context."""

    def record(
        self, name: str, kind: str, *, parent: str, links: Iterable[str], attributes: Attributes, began: int
    ) -> None:
        """Record a span that has ended. `began` is in nanoseconds; parent and links are traceparents or empty."""

    def close(self) -> None:
        """Send the remaining spans."""


class NoOpenTelemetry(Exception):
    """Tracing is configured, but OpenTelemetry is not installed."""


def check_installed() -> None:
    """Raise NoOpenTelemetry if OpenTelemetry is not installed."""
    if not extras.is_installed(extras.OTEL):
        raise NoOpenTelemetry(
            f"tracing is configured, but OpenTelemetry is not installed: {extras.install_command(extras.OTEL)},"
            " or unset OTEL_EXPORTER_OTLP_ENDPOINT and HOLDFAST_OTLP_ENDPOINT"
        )
