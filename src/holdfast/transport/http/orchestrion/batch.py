"""`POST /v1/tasks/batch`: up to 1,000 verbs in one request and one transaction, each with its own outcome."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.core.errors import Forbidden, Invalid, Refused, TaskMissing
from holdfast.core.names import is_storable
from holdfast.core.plan import CREATE, HEARTBEAT, MUTATION
from holdfast.engine.command import Command, Replayed
from holdfast.engine.verbs.batch import Batch, Outcomes
from holdfast.engine.verbs.tasks.outcomes import HeartbeatTask
from holdfast.engine.verbs.tasks.queueing import Created, CreateTask, TaskOutcome
from holdfast.operations.bounds import BATCH_BODY_BYTES, BATCH_ITEMS
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.idempotency import bind_task_key, read_task_idempotency_key
from holdfast.transport.http.bodies.parsing import parse_body, read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.orchestrion.documents import task_document
from holdfast.transport.http.orchestrion.errors import error_document
from holdfast.transport.http.orchestrion.task_verbs import (
    VERBS,
    Body,
    CancelBody,
    CompleteBody,
    FailBody,
    NoBody,
    ReleaseBody,
    RequeueBody,
    SnoozeBody,
    fields_of,
)
from holdfast.transport.http.orchestrion.tasks import CreateBody, creation, render_created
from holdfast.transport.http.request import Request, Response, answer, encode, warned
from holdfast.transport.times import milliseconds_or_none

PRODUCERS = {"create", "cancel", "requeue", "resolve"}
"""Verbs of those who make work; the others are for those who do it."""


class CreateItem(CreateBody, tag_field="op", tag="create", forbid_unknown_fields=True, rename="camel"):
    """A create among others."""


class HeartbeatItem(Body, tag_field="op", tag="heartbeat", forbid_unknown_fields=True, kw_only=True):
    """A heartbeat among others."""

    id: str


class CompleteItem(CompleteBody, tag_field="op", tag="complete", forbid_unknown_fields=True, kw_only=True):
    """A completion among others."""

    id: str


class FailItem(FailBody, tag_field="op", tag="fail", forbid_unknown_fields=True, kw_only=True):
    """A failure among others."""

    id: str


class ReleaseItem(ReleaseBody, tag_field="op", tag="release", forbid_unknown_fields=True, kw_only=True):
    """A release among others."""

    id: str


class SnoozeItem(SnoozeBody, tag_field="op", tag="snooze", forbid_unknown_fields=True, kw_only=True):
    """A snooze among others."""

    id: str


class CancelItem(CancelBody, tag_field="op", tag="cancel", forbid_unknown_fields=True, kw_only=True):
    """A cancellation among others."""

    id: str


class RequeueItem(RequeueBody, tag_field="op", tag="requeue", forbid_unknown_fields=True, kw_only=True):
    """A requeueing among others."""

    id: str


class ResolveItem(NoBody, tag_field="op", tag="resolve", forbid_unknown_fields=True, kw_only=True):
    """A resolution among others."""

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
    """What batch takes: each item is the body of its verb, with `op` and, but for create, the task's `id`."""

    items: list[msgspec.Raw]
    full: bool = False
    """Whether whole tasks are answered rather than what changed."""


class TidyBody(msgspec.Struct, forbid_unknown_fields=True):
    """The same, if every item is as it should be: then all of it is read in one go."""

    items: list[Item]
    full: bool = False


_read_tidy = msgspec.json.Decoder(TidyBody).decode


class Head(msgspec.Struct):
    """What an item is about."""

    op: str
    id: str | None = None


async def batch_tasks(ctx: HandlerContext, request: Request) -> Response:
    """Up to 1,000 verbs in one transaction."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, BatchBody, BATCH_BODY_BYTES)
    if not BATCH_ITEMS.least <= len(body.items) <= BATCH_ITEMS.most:
        message = f"`items` must have {BATCH_ITEMS}; it has {len(body.items)}"
        raise Invalid(message, [{"pointer": "/items", "code": "out_of_range", "message": message}])
    require = (await ctx.access.accounts.get(request.by.account)).require_lease_id
    commands = [_command(request, item, original, require=require) for item, original in _items(raw, body)]
    await _charge(ctx, request, commands)
    render = functools.partial(_render, request, commands, warnings, full=body.full)
    batch = Batch(
        account=request.by.account,
        cause=request.cause(),
        once=read_task_idempotency_key(request, raw, render, per_caller=True),
        items=tuple(command for command in commands if isinstance(command, Command)),
    )
    return answer(await ctx.run_idempotent(batch), render)


async def _charge(ctx: HandlerContext, request: Request, commands: list[Command[Any] | Refused]) -> None:
    """Each item costs what it would have cost alone."""
    costs = Counter(_class_of(command) for command in commands if isinstance(command, Command))
    for limit_class, cost in costs.items():
        await ctx.charge(request, limit_class, cost)


def _class_of(command: Command[Any]) -> str:
    return CREATE if isinstance(command, CreateTask) else HEARTBEAT if isinstance(command, HeartbeatTask) else MUTATION


def _items(raw: bytes, body: BatchBody) -> Iterator[tuple[Any, msgspec.Raw]]:
    """Each item, or the refusal that stands in its place, with the words it was sent in."""
    try:
        items: list[Any] = list(_read_tidy(raw).items)
    except msgspec.ValidationError:
        items = [_leniently(bytes(item)) for item in body.items]
    return zip(items, body.items, strict=True)


def _leniently(item: bytes) -> Any:
    """One item of a batch in which something is amiss: read as a body of its own, or refused alone."""
    try:
        head = msgspec.json.decode(item, type=Head)
    except msgspec.DecodeError as error:
        return Invalid(f"an item is an object with `op`: {error}")
    shapes = {kind.__struct_config__.tag: kind for kind in Item.__args__}
    if head.op not in shapes:
        return Invalid(f"`op` is one of {', '.join(map(str, shapes))}")
    try:
        read, _ = parse_body(item, shapes[head.op])
    except Refused as refusal:
        return refusal
    return read


def _command(request: Request, item: Any, original: msgspec.Raw, *, require: bool) -> Command[Any] | Refused:
    """The command of one item. An item that is wrong is refused alone."""
    if isinstance(item, Refused):
        return item
    try:
        verb = str(item.__struct_config__.tag)
        scope = "tasks:produce" if verb in PRODUCERS else "tasks:work"
        if not request.by.may(scope):
            return Forbidden(f"this key lacks the scope {scope}", scope=scope)
        if isinstance(item, CreateItem):
            return _creation(request, item, original)
        if not is_storable(item.id):  # no store has such an id, and not every one would look for it
            return TaskMissing("there is no such task")
        return VERBS[verb][0](**fields_of(request, verb, item, item.id, require=require))
    except Refused as refusal:
        return refusal


def _creation(request: Request, item: CreateItem, original: msgspec.Raw) -> Command[Any]:
    by_key = None
    if item.idempotency_key is not None:
        # The same words as a create of its own: an item may be repeated alone, and the other way round.
        words = msgspec.json.decode(original)
        del words["op"]
        render = functools.partial(render_created, [])
        by_key = bind_task_key(item.idempotency_key, " POST /v1/tasks\n", encode(words), render)
    return creation(request, item, Checks(), by_key)


def _render(
    request: Request, commands: list[Any], warnings: list[str], outcome: Outcomes, *, full: bool
) -> tuple[int, bytes]:
    came = iter(outcome.each)
    results = [
        _result(request, command if isinstance(command, Refused) else next(came), command, full=full)
        for command in commands
    ]
    succeeded = sum(result["status"] < 400 for result in results)  # noqa: PLR2004 - HTTP's own number
    document: dict[str, Any] = {"results": results, "succeeded": succeeded, "failed": len(results) - succeeded}
    document["agent_contract"] = task_advice.create_or_claim()
    return 200, encode(warned(document, warnings))


def _result(request: Request, outcome: Any, command: Any, *, full: bool) -> dict[str, Any]:
    """What one item would have been answered alone: its status, and the task or the refusal."""
    if isinstance(outcome, Refused):
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
