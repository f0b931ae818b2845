"""Traces through OpenTelemetry, sent by OTLP over HTTP. Loaded only if tracing is configured."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode, get_current_span
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from holdfast import __version__
from holdfast.telemetry.traces import CONSUMER, INTERNAL, PRODUCER, SERVER, Attributes

CLOSE_SECONDS = 2.0
MAX_LINKS = 128
"""The SDK keeps no more."""
_KINDS = {
    SERVER: SpanKind.SERVER,
    PRODUCER: SpanKind.PRODUCER,
    CONSUMER: SpanKind.CONSUMER,
    INTERNAL: SpanKind.INTERNAL,
}
_propagator = TraceContextTextMapPropagator()


class ServerSpan:
    """The span of one request."""

    def __init__(self, span: OtelSpan) -> None:
        self._span = span

    @property
    def traceparent(self) -> str:
        """The W3C traceparent of the span."""
        return format_traceparent(self._span.get_span_context())

    def end(self, name: str, attributes: Attributes, *, failed: bool = False) -> None:
        """End the span with its final name and attributes."""
        self._span.update_name(name)
        self._span.set_attributes(dict(attributes))
        if failed:
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


class OtelTraces:
    """Collects spans and sends them from a background thread, so that requests do not wait."""

    def __init__(self, endpoint: str | None) -> None:
        """An endpoint of None means OpenTelemetry's own environment variables."""
        resource = Resource.create({"service.name": "holdfast", "service.version": __version__})
        self._exporter = OTLPSpanExporter(endpoint=None if endpoint is None else f"{endpoint}/v1/traces")
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("holdfast", __version__)

    def begin(self, name: str, kind: str, headers: Mapping[str, str]) -> ServerSpan:
        """Begin the span of a request, as a child of the caller's span if the headers name one."""
        return ServerSpan(self._tracer.start_span(name, _propagator.extract(headers, Context()), _KINDS[kind]))

    def record(
        self, name: str, kind: str, *, parent: str, links: Iterable[str], attributes: Attributes, began: int
    ) -> None:
        """Record a span that has ended already."""
        found = [parse_traceparent(text) for text in links]
        self._tracer.start_span(
            name,
            _propagator.extract({"traceparent": parent}, Context()) if parent else Context(),
            _KINDS[kind],
            dict(attributes),
            [Link(context) for context in found[:MAX_LINKS] if context is not None],
            began,
        ).end()

    def close(self) -> None:
        """Send the remaining spans; an unreachable collector must not delay shutdown."""
        sending = threading.Thread(target=self._provider.shutdown, name="holdfast-traces", daemon=True)
        sending.start()
        sending.join(CLOSE_SECONDS)
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def parse_traceparent(text: str) -> SpanContext | None:
    """The span context of a traceparent."""
    context = get_current_span(_propagator.extract({"traceparent": text}, Context())).get_span_context()
    return context if context.is_valid else None


def format_traceparent(context: SpanContext) -> str:
    """The traceparent of a span context."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
