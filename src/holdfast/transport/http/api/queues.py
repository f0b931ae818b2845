"""`/v1/queues`: pause a queue, or limit how many of its tasks run, in all and by concurrency key."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.errors import Invalid
from holdfast.core.event import Cause
from holdfast.core.task import CLAIMED, PENDING
from holdfast.core.task.queue import Queue
from holdfast.engine.verbs.queues import ChangeQueue, OpenQueue, QueueState
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import queues as queue_advice
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.parsing import field_error, read_body
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.orchestrion.tasks import TYPE
from holdfast.transport.http.request import Request, Response, json_response, with_warnings
from holdfast.transport.times import rfc3339_or_none


class SetBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of set_queue: the settings to change; 0 removes a limit."""

    paused: bool | None = None
    max_running: int | None = None
    max_running_per_key: int | None = None


async def set_queue(ctx: HandlerContext, request: Request) -> Response:
    """Change the settings of a queue. Running tasks continue."""
    await ctx.authenticate(request)
    task_type = _read_type(request)
    body, warnings, _ = await read_body(request, SetBody)
    checks = Checks()
    limits = {"max_running": body.max_running, "max_running_per_key": body.max_running_per_key}
    for name, limit in limits.items():
        checks.check_range(limit, name, bounds.QUEUE_LIMIT)
    checks.raise_errors()
    changes: dict[str, bool | int | None] = {} if body.paused is None else {"paused": body.paused}
    changes |= {name: limit or None for name, limit in limits.items() if limit is not None}
    changed = await change_settings(ctx, request.by.account, request.cause(), task_type, changes)
    pending = await ctx.read(lambda reader: _counts(reader, request.by.account).get((task_type, PENDING), 0))
    document = queue_document(changed.queue, changed.running, pending)
    return json_response(200, with_warnings(document | _advice(task_type), warnings), NO_STORE)


async def change_settings(
    ctx: HandlerContext, account: str, cause: Cause, task_type: str, changes: dict[str, bool | int | None]
) -> QueueState:
    """Change the settings of a queue, whose row is made first if it has none."""
    base: dict[str, Any] = {"account": account, "cause": cause, "type": task_type}
    opened = await ctx.run(OpenQueue(**base))
    if opened.queue.version == 1:  # claims that did not find the row may still be committed
        await ctx.use_store(lambda store: store.await_open_batches())
    return await ctx.run(ChangeQueue(**base, changes=changes))


async def read_queue(ctx: HandlerContext, request: Request) -> Response:
    """One queue; one without settings has no limits."""
    await ctx.authenticate(request)
    account, task_type = request.by.account, _read_type(request)

    def read(reader: Reader) -> dict[str, Any]:
        counts = _counts(reader, account)
        queue = reader.row(Queue, account, task_type) or Queue(account, task_type)
        return queue_document(queue, counts.get((task_type, CLAIMED), 0), counts.get((task_type, PENDING), 0))

    return json_response(200, await ctx.read(read) | _advice(task_type), NO_STORE)


async def list_queues(ctx: HandlerContext, request: Request) -> Response:
    """The queues that have settings, by type."""
    await ctx.authenticate(request)
    query = Query(request, {"limit", "cursor"})
    account, limit, after = request.by.account, query.number("limit", bounds.SESSION_PAGE), query.text("cursor") or ""
    query.raise_errors()

    def read(reader: Reader) -> list[dict[str, Any]]:
        counts = _counts(reader, account)
        rows = [row for row in reader.rows_after(Queue, account, after, limit + 1) if row.account == account]
        return [queue_document(row, counts.get((row.id, CLAIMED), 0), counts.get((row.id, PENDING), 0)) for row in rows]

    found = await ctx.read(read)
    document = {
        "queues": found[:limit],
        "nextCursor": found[limit - 1]["type"] if len(found) > limit else None,
        "hasMore": len(found) > limit,
        "agent_contract": queue_advice.listed(),
    }
    return json_response(200, document, NO_STORE)


def queue_document(queue: Queue, running: int, pending: int) -> dict[str, Any]:
    """A queue with its settings, and how many of its tasks run and wait."""
    return {
        "type": queue.id,
        "paused": queue.paused,
        "max_running": queue.max_running,
        "max_running_per_key": queue.max_running_per_key,
        "running": running,
        "pending": pending,
        "changed_at": rfc3339_or_none(queue.changed_at or None),
    }


def _advice(task_type: str) -> dict[str, Any]:
    return {"agent_contract": queue_advice.shown(task_type)}


def _counts(reader: Reader, account: str) -> dict[tuple[str, str], int]:
    return {(task_type, state): total for task_type, state, total in reader.task_counts(account)}


def _read_type(request: Request) -> str:
    if TYPE.fullmatch(request.parameter) is None:
        rule = f"a task type is {bounds.TASK_TYPE} of A-Z a-z 0-9 - _"
        raise Invalid(rule, [field_error("/type", "invalid", rule)])
    return request.parameter
