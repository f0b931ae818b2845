"""Dependencies between tasks: of new tasks, in the answer of a claim, and `GET /v1/tasks/{id}/dependencies`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlencode

import msgspec

from holdfast.core import task as tasks
from holdfast.core.errors import HoldfastError, Invalid, Refused
from holdfast.core.task import RelatedTask, Task
from holdfast.engine.command import Command
from holdfast.engine.verbs.tasks.claiming import Claimed, GrantedTask
from holdfast.engine.verbs.tasks.creating import CreateTask
from holdfast.engine.verbs.tasks.plans import CreatePlan, at_item
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Render, Request, Response, json_response, raw_json

Documents = dict[str, list[dict[str, Any]]]
"""By task: what it depends on."""
ClaimRender = Callable[[Documents, Any], tuple[int, bytes]]
"""Renders the outcome of a claim."""


def check_names(checks: Checks, names: list[str]) -> None:
    """Check the ids, unique keys or refs that a new task depends on."""
    most = bounds.TASK_DEPENDENCIES
    checks.require(len(names) <= most.most, "dependsOn", f"`dependsOn` must have {most}; it has {len(names)}")
    for position, name in enumerate(names[: most.most]):
        checks.require(name != "", f"dependsOn/{position}", "an entry of `dependsOn` must not be empty")
        checks.check_text(name, f"dependsOn/{position}", bounds.TASK_UNIQUE_KEY)


# -- plans -------------------------------------------------------------------------------------------------------


def make_plan(commands: list[Command[Any] | Refused], refs: list[str | None], **fields: Any) -> CreatePlan:
    """The command that creates tasks which name each other; refuses all of them if one cannot be created."""
    checks = Checks()
    for position, ref in enumerate(refs):
        checks.require(ref != "", f"items/{position}/ref", "`ref` must not be empty")
        checks.check_text(ref, f"items/{position}/ref", bounds.TASK_REF)
        checks.require(ref is None or ref not in refs[:position], f"items/{position}/ref", "`ref` is used twice")
    checks.raise_errors()
    creates: list[CreateTask] = []
    for position, command in enumerate(commands):
        if isinstance(command, Refused):
            raise at_item(command, position)
        if not isinstance(command, CreateTask):
            message = "a batch in which an item has a `ref` may only create tasks"
            raise Invalid(message, [{"pointer": f"/items/{position}/op", "code": "invalid", "message": message}])
        creates.append(command)
    return CreatePlan(items=tuple(creates), refs=tuple(refs), **fields)


# -- claims ------------------------------------------------------------------------------------------------------


async def with_dependencies(ctx: HandlerContext, request: Request, outcome: Any, render: ClaimRender) -> Render:
    """The function that renders a claim, with what the claimed tasks depend on."""
    found = await read_for_claim(ctx, request.by.account, outcome.taken) if isinstance(outcome, Claimed) else {}
    return functools.partial(render, found)


async def read_for_claim(ctx: HandlerContext, account: str, taken: Iterable[GrantedTask]) -> Documents:
    """What each claimed task depends on, with as many results as fit; empty if the store cannot be read now.

    The tasks are claimed already: a worker that gets no results can still read them one by one.
    """
    needs = {each.task.id: tasks.needed_ids(each.task) for each in taken if each.task.depends_on is not None}
    if not needs:
        return {}

    def read(reader: Reader) -> dict[str, RelatedTask]:
        return read_with_results(reader, account, [task_id for ids in needs.values() for task_id in ids])

    try:
        found = await ctx.read(read)
    except HoldfastError:
        return {}
    return {task_id: [_with_result(needed, found.get(needed)) for needed in ids] for task_id, ids in needs.items()}


def read_with_results(reader: Reader, account: str, ids: list[str]) -> dict[str, RelatedTask]:
    """Tasks by id, with as many results as are shown together. Others are not even read: they may be large."""
    found = {each.id: each for each in reader.tasks_with_results(account, ids, 0)}
    shown = tasks.results_that_fit(found[task_id] for task_id in dict.fromkeys(ids) if task_id in found)
    return found | {each.id: each for each in reader.tasks_with_results(account, shown, bounds.TASK_PAYLOAD.size)}


def _with_result(task_id: str, task: RelatedTask | None) -> dict[str, Any]:
    """A dependency for the worker that claimed the task; `status` is null if it does not exist any more."""
    document: dict[str, Any] = {"id": task_id, "status": None if task is None else task.state}
    result = None if task is None else _valid(task.result)
    document["result"] = raw_json(result)
    if result is None and task is not None and task.result_size:
        document["resultOmitted"] = True
    return document


def _valid(result: str | None) -> str | None:
    """The result, unless it is damaged: then the whole answer would be no JSON."""
    try:
        msgspec.json.decode(result or "null")
    except msgspec.DecodeError:
        return None
    return result


# -- the list ----------------------------------------------------------------------------------------------------


async def task_dependencies(ctx: HandlerContext, request: Request) -> Response:
    """Read what a task depends on, and which tasks depend on it."""
    await ctx.authenticate(request)
    query = Query(request, {"limit", "cursor"})
    limit = query.number("limit", bounds.TASK_PAGE)
    cursor = query.text("cursor") or ""
    query.raise_errors()
    account, task_id = request.by.account, request.parameter

    def read(reader: Reader) -> tuple[Task, list[RelatedTask], list[RelatedTask]]:
        task = tasks.check_found(reader.row(Task, account, task_id))
        needed = reader.tasks_with_results(account, tasks.needed_ids(task), 0)
        return task, needed, reader.dependents(account, task_id, cursor, limit + 1)

    task, needed, dependents = await ctx.read(read)
    found, unmet = {each.id: each for each in needed}, set(tasks.unmet_ids(task))
    more = dependents[limit - 1].id if len(dependents) > limit else None
    following = None if more is None else urlencode(query.values() | {"cursor": more})
    document = {
        "dependsOn": [
            related_document(each, found.get(each)) | {"met": each not in unmet} for each in tasks.needed_ids(task)
        ],
        "dependents": [related_document(each.id, each) for each in dependents[:limit]],
        "nextCursor": more,
        "hasMore": more is not None,
        "agent_contract": task_advice.dependencies_read(task_id, following),
    }
    return json_response(200, document, NO_STORE)


def related_document(task_id: str, task: RelatedTask | None) -> dict[str, Any]:
    """A task in a list of dependencies; only its id if it does not exist any more."""
    if task is None:
        return {"id": task_id, "type": None, "status": None}
    document: dict[str, Any] = {"id": task_id, "type": task.type, "status": task.state}
    return document if task.waits_for is None else document | {"waitingFor": task.waits_for}
