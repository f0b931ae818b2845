"""What the door tells a trace: a span for each request, and one for what a task went through in it."""

from __future__ import annotations

from typing import Any

from holdfast.engine.command import Command
from holdfast.engine.verbs.batch import Batch, Outcomes
from holdfast.engine.verbs.tasks.outcomes import CompleteTask, FailTask, HandBackTask
from holdfast.engine.verbs.tasks.queueing import ClaimCommand, Claimed, Created, CreateTask, TaskOutcome
from holdfast.telemetry import trace_names as names
from holdfast.telemetry.traces import CONSUMER, INTERNAL, PRODUCER, SERVER, Span, Traces
from holdfast.transport.http.request import Request

_WANTED = (b"traceparent", b"tracestate")


def begin(traces: Traces, request: Request) -> Span:
    """A request arrives; from here on it is the cause of what it changes."""
    headers = {name.decode(): request.headers[name].decode("latin-1") for name in _WANTED if name in request.headers}
    span = traces.begin(request.scope["method"], SERVER, headers)
    request.traceparent = span.traceparent
    return span


def end(span: Span, request: Request, status: int) -> None:
    """It was answered. Ids and where it went; no body, no query, no name that a caller chose."""
    method, operation = request.scope["method"], request.operation
    told: dict[str, str | int] = {
        names.METHOD: method,
        names.SCHEME: request.scope.get("scheme", "http"),
        names.STATUS: status,
        names.REQUEST_ID: request.request_id,
    }
    if operation is not None:
        told |= {names.ROUTE: operation.path, names.OPERATION: operation.name}
    if request.principal is not None:
        told[names.ACCOUNT] = request.principal.account
    failed = status >= 500  # noqa: PLR2004 - ours, not the caller's
    if failed:
        told[names.ERROR] = str(status)
    span.end(method if operation is None else f"{method} {operation.path}", told, failed=failed)


def tell_queue(traces: Traces, command: Command[Any], outcome: Any, began: int) -> None:
    """What a request did with tasks: sent, received or settled them. Receiving and settling point at the sending."""
    if isinstance(command, Batch) and isinstance(outcome, Outcomes):
        for item, each in zip(command.items, outcome.each, strict=True):
            tell_queue(traces, item, each, began)
        return
    if isinstance(command, CreateTask) and isinstance(outcome, Created):
        kind, word, found = PRODUCER, names.SEND, [outcome.task]
    elif isinstance(command, ClaimCommand) and isinstance(outcome, Claimed):
        kind, word, found = CONSUMER, names.RECEIVE, [taken.task for taken in outcome.taken]
    elif isinstance(command, CompleteTask | FailTask | HandBackTask) and isinstance(outcome, TaskOutcome):
        kind, word, found = INTERNAL, names.SETTLE, [outcome.task]
    else:
        return
    told: dict[str, str | int] = {
        names.SYSTEM: names.SYSTEM_NAME,
        names.OPERATION_TYPE: word,
        names.OPERATION_NAME: type(command).__name__,
        names.DESTINATION: found[0].type,
        names.MESSAGES: len(found),
    }
    if len(found) == 1:
        told[names.MESSAGE_ID] = found[0].id
    links = () if word == names.SEND else [task.traceparent for task in found if task.traceparent]
    parent = command.cause.traceparent
    traces.tell(f"{word} {found[0].type}", kind, parent=parent, links=links, attributes=told, began=began)
