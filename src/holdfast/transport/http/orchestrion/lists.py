"""Handlers that read tasks: one task, a filtered list, counts by state."""

from __future__ import annotations

from urllib.parse import urlencode

from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.row import Instant
from holdfast.core.task import Task
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.deadlines import read_effective, read_one_effective
from holdfast.transport.full_queues import with_queue_limits
from holdfast.transport.http.api.cursors import check_known
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.orchestrion.documents import task_document
from holdfast.transport.http.request import Request, Response, json_response
from holdfast.transport.task_filter import NEWEST, TaskFilter, TaskPage, find_tasks

SCAN_LIMIT = 10_000
"""Tasks read for one page: a filter that few tasks match gets a short page and a cursor."""


async def check_task_status(ctx: HandlerContext, request: Request) -> Response:
    """Read a task; with `wait_seconds`, wait until it is finished."""
    await ctx.authenticate(request)
    query = Query(request, {"wait_seconds"})
    wait = query.seconds("wait_seconds", bounds.WAIT)
    query.raise_errors()
    account, task_id = request.by.account, request.parameter

    def read_task(reader: Reader) -> tuple[Task, Instant]:
        task = tasks.check_found(read_one_effective(reader, Task, account, task_id))
        return with_queue_limits(reader, account, [task])[0], reader.now

    def is_finished(found: tuple[Task, Instant]) -> bool:
        return found[0].state in tasks.FINAL_STATES

    if wait:
        task, now = await ctx.wait_for((Task.table, account, task_id), read_task, is_finished, wait, request)
    else:
        task, now = await ctx.read(read_task)
    return json_response(200, task_document(task, now), NO_STORE)


async def list_tasks(ctx: HandlerContext, request: Request) -> Response:
    """List tasks, newest first."""
    await ctx.authenticate(request)
    query = Query(request, _FILTERS)
    limit = query.number("limit", bounds.TASK_PAGE)
    resolved = query.choice("resolved", ("true", "false"))
    filters = TaskFilter(
        type=query.text("type") or "",
        state=query.choice("status", tasks.STATES) or "",
        tag=query.text("tag") or "",
        key=query.text("key") or query.text("uniqueKey") or "",
        waits_for=query.choice("waiting", tasks.WAITS_FOR) or "",
        worker=query.text("worker") or "",
        session=query.text("sessionId") or "",
        resolved=None if resolved is None else resolved == "true",
        created_after=query.time("createdAfter"),
        created_before=query.time("createdBefore"),
        updated_after=query.time("updatedAfter"),
        updated_before=query.time("updatedBefore"),
    )
    cursor = query.text("cursor")
    query.raise_errors()
    account = request.by.account

    def read_page(reader: Reader) -> TaskPage:
        if cursor is not None:
            check_known(reader, Task, account, cursor)
        page = find_tasks(reader, account, filters, cursor or NEWEST, limit=limit, scan_limit=SCAN_LIMIT)
        return replace(page, tasks=with_queue_limits(reader, account, read_effective(reader, page.tasks)))

    page = await ctx.read(read_page)
    more = page.next_cursor or None
    following = None if more is None else urlencode(query.values() | {"cursor": more})
    return json_response(
        200,
        {
            "tasks": [task_document(task, page.now) for task in page.tasks],
            "nextCursor": more,
            "hasMore": more is not None,
            "agent_contract": task_advice.listed(page.tasks, following),
        },
        NO_STORE,
    )


_FILTERS = {
    "limit",
    "cursor",
    "type",
    "status",
    "tag",
    "key",
    "uniqueKey",
    "waiting",
    "worker",
    "sessionId",
    "resolved",
    "createdAfter",
    "createdBefore",
    "updatedAfter",
    "updatedBefore",
}


async def count_tasks(ctx: HandlerContext, request: Request) -> Response:
    """Count tasks by type and state."""
    await ctx.authenticate(request)
    counted = await ctx.read(lambda reader: reader.task_counts(request.by.account))
    by_type: dict[str, dict[str, int]] = {}
    total = dict.fromkeys(tasks.STATES, 0)
    for task_type, state, count in counted:
        by_type.setdefault(task_type, dict.fromkeys(tasks.STATES, 0))[state] = count
        total[state] += count
    document = {"types": by_type, "total": total, "agent_contract": task_advice.counted()}
    return json_response(200, document, NO_STORE)
