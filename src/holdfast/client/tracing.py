"""Passes traces on, if the program traces at all: one that does has OpenTelemetry loaded, others do not load it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.core.trace import traceparent
from holdfast.telemetry import trace_names as names


def outgoing() -> dict[str, str]:
    """The headers that tell a server where its request belongs: to the span under way, or to what started us."""
    headers: dict[str, str] = {}
    if _traces():
        from opentelemetry import propagate  # noqa: PLC0415 - only where it is in use

        propagate.inject(headers)
    if "traceparent" not in headers:
        started_by = traceparent(os.environ.get("TRACEPARENT", ""))
        headers |= {"traceparent": started_by} if started_by else {}
    return {name: value for name, value in headers.items() if name in {"traceparent", "tracestate"}}


@contextmanager
def processing(task: dict[str, Any]) -> Iterator[None]:
    """A span for the work on a task, which points at the request that created it."""
    if not _traces():
        yield
        return
    from opentelemetry import propagate, trace  # noqa: PLC0415 - only where it is in use

    links = []
    if task.get("traceparent"):
        creator = trace.get_current_span(propagate.extract({"traceparent": task["traceparent"]}))
        links = [trace.Link(creator.get_span_context())]
    told = {
        names.SYSTEM: names.SYSTEM_NAME,
        names.OPERATION_TYPE: names.PROCESS,
        names.DESTINATION: task["type"],
        names.MESSAGE_ID: task["id"],
    }
    tracer = trace.get_tracer("holdfast")
    kind = trace.SpanKind.CONSUMER
    with tracer.start_as_current_span(f"{names.PROCESS} {task['type']}", kind=kind, attributes=told, links=links):
        yield


def _traces() -> bool:
    return "opentelemetry.trace" in sys.modules
