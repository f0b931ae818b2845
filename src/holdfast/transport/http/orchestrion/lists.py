"""`GET /v1/tasks…`: one task, lists of them, how many there are."""

from __future__ import annotations

from urllib.parse import urlencode

from holdfast.core import task as tasks
from holdfast.core.row import Instant
from holdfast.core.task import Task
from holdfast.store.contract import Reader, TaskPath
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.orchestrion.documents import task_document
from holdfast.transport.http.orchestrion.tasks import MAX_WAIT
from holdfast.transport.http.request import Request, Response, json_response

PAGE, MAX_PAGE = 50, 100
SCANNED, AT_ONCE = 10_000, 500
"""A page is found by looking at no more tasks than this; a rare filter then gets a short page and a cursor."""


async def check_task_status(ctx: HandlerContext, request: Request) -> Response:
    """A task as it is; with `wait_seconds`, its result as soon as there is one."""
    await ctx.authenticate(request)
    query = Query(request, {"wait_seconds"})
    wait = query.seconds("wait_seconds", MAX_WAIT)
    query.raise_errors()
    account, task_id = request.by.account, request.parameter

    def look(reader: Reader) -> tuple[Task, Instant]:
        return tasks.check_found(reader.row(Task, account, task_id)), reader.now

    def is_over(found: tuple[Task, Instant]) -> bool:
        return found[0].state in tasks.FINAL_STATES

    if wait:
        task, now = await ctx.watch((Task.table, account, task_id), look, is_over, wait, request)
    else:
        task, now = await ctx.read(look)
    return json_response(200, task_document(task, now), NO_STORE)


async def list_tasks(ctx: HandlerContext, request: Request) -> Response:
    """Tasks, newest first."""
    await ctx.authenticate(request)
    query = Query(request, _FILTERS)
    limit = query.number("limit", 1, MAX_PAGE, default=PAGE)
    wanted = TaskPath(
        type=query.text("type"),
        state=query.choice("status", tasks.STATES),
        tag=query.text("tag"),
        unique_key=query.text("key") or query.text("uniqueKey"),
    )
    rest = {name: query.text(name) for name in ("worker", "sessionId")}
    times = {name: query.time(name) for name in ("createdAfter", "createdBefore", "updatedAfter", "updatedBefore")}
    resolved = query.choice("resolved", ("true", "false"))
    cursor = query.text("cursor") or _AFTER_ALL
    query.raise_errors()
    account = request.by.account

    def fits(task: Task) -> bool:
        return (
            wanted.type in {None, task.type}
            and wanted.state in {None, task.state}
            and wanted.tag in {None, task.tag}
            and wanted.unique_key in {None, task.unique_key}
            and rest["worker"] in {None, task.worker}
            and rest["sessionId"] in {None, task.session}
            and (resolved is None or (task.resolved_at is not None) == (resolved == "true"))
            and _within(task.created_at, times["createdAfter"], times["createdBefore"])
            and _within(task.changed_at, times["updatedAfter"], times["updatedBefore"])
        )

    def look(reader: Reader) -> tuple[list[Task], str | None, Instant]:
        found: list[Task] = []
        before, scanned = cursor, 0
        while scanned < SCANNED:
            page = reader.tasks(account, wanted, before, AT_ONCE)
            scanned += len(page)
            for task in page:
                if fits(task):
                    if len(found) == limit:
                        return found, before, reader.now
                    found.append(task)
                before = task.id
            if len(page) < AT_ONCE:
                return found, None, reader.now
        return found, before, reader.now

    found, more, now = await ctx.read(look)
    following = None if more is None else urlencode(query.values() | {"cursor": more})
    return json_response(
        200,
        {
            "tasks": [task_document(task, now) for task in found],
            "nextCursor": more,
            "hasMore": more is not None,
            "agent_contract": task_advice.listed(found, following),
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
    "worker",
    "sessionId",
    "resolved",
    "createdAfter",
    "createdBefore",
    "updatedAfter",
    "updatedBefore",
}
_AFTER_ALL = "tsk_~"


def _within(instant: Instant, after: Instant | None, before: Instant | None) -> bool:
    return (after is None or instant >= after) and (before is None or instant < before)


async def count_tasks(ctx: HandlerContext, request: Request) -> Response:
    """How many tasks of each type are in each state."""
    await ctx.authenticate(request)
    counted = await ctx.read(lambda reader: reader.task_counts(request.by.account))
    by_type: dict[str, dict[str, int]] = {}
    total = dict.fromkeys(tasks.STATES, 0)
    for task_type, state, count in counted:
        by_type.setdefault(task_type, dict.fromkeys(tasks.STATES, 0))[state] = count
        total[state] += count
    document = {"types": by_type, "total": total, "agent_contract": task_advice.counted()}
    return json_response(200, document, NO_STORE)
