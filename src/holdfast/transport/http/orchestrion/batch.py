"""`POST /v1/tasks/batch`: several task verbs in one transaction, each with its own outcome."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.core.errors import Forbidden, Invalid, Overloaded, Refused, TaskMissing
from holdfast.core.names import is_storable
from holdfast.core.plan import CREATE, HEARTBEAT, MUTATION
from holdfast.decoding import decode, decoder
from holdfast.engine.command import Command, Replayed
from holdfast.engine.verbs.batch import Batch, FailedItem, Outcomes
from holdfast.engine.verbs.tasks.base import TaskOutcome
from holdfast.engine.verbs.tasks.creating import Created, CreateTask
from holdfast.engine.verbs.tasks.holding import HeartbeatTask
from holdfast.operations.bound_kinds import KB
from holdfast.operations.bounds import BATCH_BODY_BYTES, BATCH_ITEMS
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.http.bodies.idempotency import bind_task_key, read_task_idempotency_key
from holdfast.transport.http.bodies.parsing import parse_body, read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.orchestrion.dependencies import make_plan
from holdfast.transport.http.orchestrion.documents import task_document
from holdfast.transport.http.orchestrion.errors import error_document
from holdfast.transport.http.orchestrion.task_verbs import (
    VERBS,
    CancelBody,
    CompleteBody,
    FailBody,
    HolderBody,
    NoBody,
    ReleaseBody,
    RequeueBody,
    Rules,
    SnoozeBody,
    fields_of,
    rules_of,
)
from holdfast.transport.http.orchestrion.tasks import CreateBody, create_command, new_task_id, render_created
from holdfast.transport.http.overload.large_work import run_sized
from holdfast.transport.http.request import Request, Response, answer, encode, with_warnings
from holdfast.transport.times import milliseconds_or_none

PRODUCERS = {"create", "cancel", "requeue", "resolve"}
"""Verbs that need the scope tasks:produce; the others need tasks:work."""


class CreateItem(CreateBody, tag_field="op", tag="create", forbid_unknown_fields=True, rename="camel"):
    """A create in a batch; others may depend on its `ref`."""

    ref: str | None = None


class HeartbeatItem(HolderBody, tag_field="op", tag="heartbeat", forbid_unknown_fields=True, kw_only=True):
    """A heartbeat in a batch."""

    id: str


class CompleteItem(CompleteBody, tag_field="op", tag="complete", forbid_unknown_fields=True, kw_only=True):
    """A completion in a batch."""

    id: str


class FailItem(FailBody, tag_field="op", tag="fail", forbid_unknown_fields=True, kw_only=True):
    """A failure in a batch."""

    id: str


class ReleaseItem(ReleaseBody, tag_field="op", tag="release", forbid_unknown_fields=True, kw_only=True):
    """A release in a batch."""

    id: str


class SnoozeItem(SnoozeBody, tag_field="op", tag="snooze", forbid_unknown_fields=True, kw_only=True):
    """A snooze in a batch."""

    id: str


class CancelItem(CancelBody, tag_field="op", tag="cancel", forbid_unknown_fields=True, kw_only=True):
    """A cancellation in a batch."""

    id: str


class RequeueItem(RequeueBody, tag_field="op", tag="requeue", forbid_unknown_fields=True, kw_only=True):
    """A requeueing in a batch."""

    id: str


class ResolveItem(NoBody, tag_field="op", tag="resolve", forbid_unknown_fields=True, kw_only=True):
    """A resolution in a batch."""

    id: str


Item = (
    CreateItem
    | HeartbeatItem
    | CompleteItem
    | FailItem
    | ReleaseItem
    | SnoozeItem
    | CancelItem
    | RequeueItem
    | ResolveItem
)


class BatchBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of batch_tasks: each item is the body of its verb with `op` and, except for create, the task's `id`."""

    items: list[msgspec.Raw]
    full: bool = False
    """Whether results contain whole tasks instead of the changed fields."""


class ValidBatchBody(msgspec.Struct, forbid_unknown_fields=True):
    """The same with typed items: a batch without errors is decoded in one call."""

    items: list[Item]
    full: bool = False


_decode_valid = decoder(ValidBatchBody)


class ItemHead(msgspec.Struct):
    """Verb and task of an item."""

    op: str
    id: str | None = None


async def batch_tasks(ctx: HandlerContext, request: Request) -> Response:
    """Apply several task verbs in one transaction."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, BatchBody, BATCH_BODY_BYTES)
    if not BATCH_ITEMS.least <= len(body.items) <= BATCH_ITEMS.most:
        message = f"`items` must have {BATCH_ITEMS}; it has {len(body.items)}"
        raise Invalid(message, [{"pointer": "/items", "code": "out_of_range", "message": message}])
    rules = await rules_of(ctx, request)
    task_ids = [new_task_id() for _ in body.items]
    render = functools.partial(_render, request, warnings, full=body.full)

    def make_batch() -> tuple[list[Command[Any] | Refused], Batch]:
        items = list(_items(raw, body))
        commands = [
            _command(request, item, original, task_id, rules)
            for (item, original), task_id in zip(items, task_ids, strict=True)
        ]
        fields: dict[str, Any] = {
            "account": request.by.account,
            "cause": request.cause(),
            "once": read_task_idempotency_key(request, raw, functools.partial(render, commands), per_caller=True),
        }
        refs = [item.ref if isinstance(item, CreateItem) else None for item, _ in items]
        if any(ref is not None for ref in refs):
            return commands, make_plan(commands, refs, **fields)
        return commands, Batch(items=tuple(each for each in commands if isinstance(each, Command)), **fields)

    commands, batch = await run_sized(len(raw), make_batch)
    if not (request.may_begin_work or batch.urgent):
        raise Overloaded("too many requests are in progress")
    await _charge(ctx, request, commands)
    outcome = await ctx.run_idempotent(batch)
    return await run_sized(len(raw), lambda: answer(outcome, functools.partial(render, commands)))


async def _charge(ctx: HandlerContext, request: Request, commands: list[Command[Any] | Refused]) -> None:
    """Charge each item as if it were sent alone."""
    costs = Counter(_limit_class(command) for command in commands if isinstance(command, Command))
    for limit_class, cost in costs.items():
        await ctx.charge(request, limit_class, cost)


def _limit_class(command: Command[Any]) -> str:
    return CREATE if isinstance(command, CreateTask) else HEARTBEAT if isinstance(command, HeartbeatTask) else MUTATION


def _items(raw: bytes, body: BatchBody) -> Iterator[tuple[Any, msgspec.Raw]]:
    """Each item, or its refusal, with its JSON as sent."""
    try:
        items: list[Any] = list(_decode_valid(raw).items)
    except msgspec.ValidationError:
        items = [_parse_item(bytes(item)) for item in body.items]
    return zip(items, body.items, strict=True)


def _parse_item(item: bytes) -> Any:
    """Parse one item of a batch with errors; an invalid item becomes its refusal."""
    try:
        head = decode(item, ItemHead)
    except msgspec.DecodeError as error:
        return Invalid(f"an item must be an object with `op`: {error}")
    body_types = {kind.__struct_config__.tag: kind for kind in Item.__args__}
    if head.op not in body_types:
        return Invalid(f"`op` must be one of {', '.join(map(str, body_types))}")
    try:
        read, _ = parse_body(item, body_types[head.op])
    except Refused as refusal:
        return refusal
    return read


def _command(request: Request, item: Any, original: msgspec.Raw, task_id: str, rules: Rules) -> Command[Any] | Refused:
    """The command of one item, or its refusal."""
    if isinstance(item, Refused):
        return item
    try:
        verb = str(item.__struct_config__.tag)
        scope = "tasks:produce" if verb in PRODUCERS else "tasks:work"
        if not request.by.may(scope):
            return Forbidden(f"this key lacks the scope {scope}", scope=scope)
        if isinstance(item, CreateItem):
            return _create_command(request, item, original, task_id)
        if not is_storable(item.id):  # such an id cannot exist, and not every store accepts it in a query
            return TaskMissing("there is no such task")
        return VERBS[verb][0](**fields_of(request, verb, item, item.id, rules))
    except Refused as refusal:
        return refusal


def _create_command(request: Request, item: CreateItem, original: msgspec.Raw, task_id: str) -> Command[Any]:
    idempotency = None
    if item.idempotency_key is not None:
        # Hashed like a single create, so that an item can be repeated alone, and the other way round.
        body = msgspec.json.decode(original)
        del body["op"]
        body.pop("ref", None)
        render = functools.partial(render_created, [])
        idempotency = bind_task_key(item.idempotency_key, " POST /v1/tasks\n", encode(body), render)
    return create_command(request, item, task_id, idempotency)


def _render(
    request: Request, warnings: list[str], commands: list[Any], outcome: Outcomes, *, full: bool
) -> tuple[int, bytes]:
    outcomes = iter(outcome.each)
    results, size = [], 0
    for command in commands:
        found = command if isinstance(command, Refused) else next(outcomes)
        size += _full_size(found) if full else 0
        results.append(_result(request, found, command, full=full and size <= BATCH_BODY_BYTES))
    if size > BATCH_BODY_BYTES:
        shown = f"whole tasks are shown up to {BATCH_BODY_BYTES // KB} KB; the last results have changed fields only"
        warnings = [*warnings, shown]
    succeeded = sum(result["status"] < 400 for result in results)
    document: dict[str, Any] = {"results": results, "succeeded": succeeded, "failed": len(results) - succeeded}
    document["agent_contract"] = task_advice.batch_done()
    return 200, encode(with_warnings(document, warnings))


def _full_size(outcome: Any) -> int:
    """About how many bytes a whole task adds to the answer."""
    if not isinstance(outcome, TaskOutcome):
        return 0
    task = outcome.task
    return sum(len(text or "") for text in (task.payload, task.result, task.checkpoint))


def _result(request: Request, outcome: Any, command: Any, *, full: bool) -> dict[str, Any]:
    """The result of one item: its status, and the task or the error."""
    if isinstance(outcome, FailedItem):
        status, document = error_document(request, outcome, getattr(command, "task_id", None))
        return {"status": status, **document}
    if isinstance(outcome, Replayed):
        return {"status": outcome.status, "replayed": True, "task": msgspec.Raw(outcome.body)}
    assert isinstance(outcome, TaskOutcome)
    task = outcome.task
    duplicate = isinstance(outcome, Created) and outcome.deduplicated
    result: dict[str, Any] = {"status": 201 if isinstance(outcome, Created) and not duplicate else 200}
    if duplicate:
        result["deduplicated"] = True
    if full:
        result["task"] = task_document(task, outcome.now)
        return result
    result["task"] = {"id": task.id, "status": task.state, "attemptCount": task.attempt_count}
    if task.expires_at is not None:
        result["task"]["leaseExpiresAt"] = milliseconds_or_none(task.expires_at)
        result["task"]["cancelRequested"] = task.cancel_requested
    return result
