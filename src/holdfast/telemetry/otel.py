"""Traces through OpenTelemetry, sent by OTLP over HTTP. Loaded only when somebody asks for traces."""

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
MOST_LINKS = 128
"""As many as the SDK keeps."""
_KINDS = {
    SERVER: SpanKind.SERVER,
    PRODUCER: SpanKind.PRODUCER,
    CONSUMER: SpanKind.CONSUMER,
    INTERNAL: SpanKind.INTERNAL,
}
_propagator = TraceContextTextMapPropagator()


class ServerSpan:
    """One request."""

    def __init__(self, span: OtelSpan) -> None:
        self._span = span

    @property
    def traceparent(self) -> str:
        """How others name it."""
        return written(self._span.get_span_context())

    def end(self, name: str, attributes: Attributes, *, failed: bool = False) -> None:
        """It has been answered."""
        self._span.update_name(name)
        self._span.set_attributes(dict(attributes))
        if failed:
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


class OtelTraces:
    """Gathers spans and sends them from a thread of its own; whoever makes one does not wait."""

    def __init__(self, endpoint: str | None) -> None:
        """An endpoint of None is what OpenTelemetry's own variables say."""
        resource = Resource.create({"service.name": "holdfast", "service.version": __version__})
        self._exporter = OTLPSpanExporter(endpoint=None if endpoint is None else f"{endpoint}/v1/traces")
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("holdfast", __version__)

    def begin(self, name: str, kind: str, headers: Mapping[str, str]) -> ServerSpan:
        """A span of a request, as its caller's child if the caller said where it belongs."""
        return ServerSpan(self._tracer.start_span(name, _propagator.extract(headers, Context()), _KINDS[kind]))

    def tell(
        self, name: str, kind: str, *, parent: str, links: Iterable[str], attributes: Attributes, began: int
    ) -> None:
        """A span that is over already."""
        found = [read(text) for text in links]
        self._tracer.start_span(
            name,
            _propagator.extract({"traceparent": parent}, Context()) if parent else Context(),
            _KINDS[kind],
            dict(attributes),
            [Link(context) for context in found[:MOST_LINKS] if context is not None],
            began,
        ).end()

    def close(self) -> None:
        """Send what has not been sent; a collector that is not there must not keep a server from ending."""
        sending = threading.Thread(target=self._provider.shutdown, name="holdfast-traces", daemon=True)
        sending.start()
        sending.join(CLOSE_SECONDS)
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def read(text: str) -> SpanContext | None:
    """The span that a traceparent names."""
    context = get_current_span(_propagator.extract({"traceparent": text}, Context())).get_span_context()
    return context if context.is_valid else None


def written(context: SpanContext) -> str:
    """The traceparent of a span."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
