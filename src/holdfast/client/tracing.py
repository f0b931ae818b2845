"""Propagates OpenTelemetry traces, if the program itself has loaded OpenTelemetry."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.core.trace import traceparent
from holdfast.telemetry import trace_names as names


def trace_headers() -> dict[str, str]:
    """Trace headers of a request: of the current span, else of the process that started this one (TRACEPARENT)."""
    headers: dict[str, str] = {}
    if is_tracing():
        from opentelemetry import propagate

        propagate.inject(headers)
    if "traceparent" not in headers:
        parent = traceparent(os.environ.get("TRACEPARENT", ""))
        headers |= {"traceparent": parent} if parent else {}
    return {name: value for name, value in headers.items() if name in {"traceparent", "tracestate"}}


@contextmanager
def processing(task: dict[str, Any]) -> Iterator[None]:
    """Span for the work on a task, linked to the request that created the task."""
    if not is_tracing():
        yield
        return
    from opentelemetry import propagate, trace

    links = []
    if task.get("traceparent"):
        creator = trace.get_current_span(propagate.extract({"traceparent": task["traceparent"]}))
        links = [trace.Link(creator.get_span_context())]
    attributes = {
        names.SYSTEM: names.SYSTEM_NAME,
        names.OPERATION_TYPE: names.PROCESS,
        names.DESTINATION: task["type"],
        names.MESSAGE_ID: task["id"],
    }
    tracer = trace.get_tracer("holdfast")
    kind = trace.SpanKind.CONSUMER
    with tracer.start_as_current_span(f"{names.PROCESS} {task['type']}", kind=kind, attributes=attributes, links=links):
        yield


def is_recording() -> bool:
    """Whether a span is being recorded here: a program that has only loaded OpenTelemetry records none."""
    if not is_tracing():
        return False
    from opentelemetry import trace

    return trace.get_current_span().is_recording()


def is_tracing() -> bool:
    """Whether the program records traces."""
    return "opentelemetry.trace" in sys.modules
