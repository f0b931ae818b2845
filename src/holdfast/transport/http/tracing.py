"""OpenTelemetry spans: one for each request, and one for each task command in it."""

from __future__ import annotations

from typing import Any

from holdfast.engine.command import Command
from holdfast.engine.verbs.batch import Batch, Outcomes
from holdfast.engine.verbs.tasks.base import TaskOutcome
from holdfast.engine.verbs.tasks.claiming import ClaimCommand, Claimed
from holdfast.engine.verbs.tasks.creating import Created, CreateTask
from holdfast.engine.verbs.tasks.holding import CompleteTask, FailTask, ReleaseTask
from holdfast.telemetry import trace_names as names
from holdfast.telemetry.traces import CONSUMER, INTERNAL, PRODUCER, SERVER, Span, Traces
from holdfast.transport.http.request import Request

_TRACE_HEADERS = (b"traceparent", b"tracestate")


def begin(traces: Traces, request: Request) -> Span:
    """Begin the span of a request; what the request changes names this span as its cause."""
    headers = {
        name.decode(): request.headers[name].decode("latin-1") for name in _TRACE_HEADERS if name in request.headers
    }
    span = traces.begin(request.scope["method"], SERVER, headers)
    request.traceparent = span.traceparent
    return span


def end(span: Span, request: Request, status: int) -> None:
    """End the span. It has ids and the route, but no body, no query, and no name that a caller chose."""
    method, operation = request.scope["method"], request.operation
    attributes: dict[str, str | int] = {
        names.METHOD: method,
        names.SCHEME: request.scope.get("scheme", "http"),
        names.STATUS: status,
        names.REQUEST_ID: request.request_id,
    }
    if operation is not None:
        attributes |= {names.ROUTE: operation.path, names.OPERATION: operation.name}
    if request.principal is not None:
        attributes[names.ACCOUNT] = request.principal.account
    failed = status >= 500
    if failed:
        attributes[names.ERROR] = str(status)
    span.end(method if operation is None else f"{method} {operation.path}", attributes, failed=failed)


def trace_task_command(traces: Traces, command: Command[Any], outcome: Any, began: int) -> None:
    """Record that tasks were sent, received or settled. Received and settled tasks link to the span that sent them."""
    if isinstance(command, Batch) and isinstance(outcome, Outcomes):
        for item, each in zip(command.items, outcome.each, strict=True):
            trace_task_command(traces, item, each, began)
        return
    if isinstance(command, CreateTask) and isinstance(outcome, Created):
        kind, step, found = PRODUCER, names.SEND, [outcome.task]
    elif isinstance(command, ClaimCommand) and isinstance(outcome, Claimed):
        kind, step, found = CONSUMER, names.RECEIVE, [claimed.task for claimed in outcome.taken]
    elif isinstance(command, CompleteTask | FailTask | ReleaseTask) and isinstance(outcome, TaskOutcome):
        kind, step, found = INTERNAL, names.SETTLE, [outcome.task]
    else:
        return
    attributes: dict[str, str | int] = {
        names.SYSTEM: names.SYSTEM_NAME,
        names.OPERATION_TYPE: step,
        names.OPERATION_NAME: type(command).__name__,
        names.DESTINATION: found[0].type,
        names.MESSAGES: len(found),
    }
    if len(found) == 1:
        attributes[names.MESSAGE_ID] = found[0].id
    links = () if step == names.SEND else [task.traceparent for task in found if task.traceparent]
    parent = command.cause.traceparent
    traces.record(f"{step} {found[0].type}", kind, parent=parent, links=links, attributes=attributes, began=began)
