"""Tasks page: tasks by state and filter, and one task with its attempts."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import task as tasks
from holdfast.core.errors import Invalid
from holdfast.core.event import subject_of
from holdfast.core.principal import Principal, may_see_key
from holdfast.core.row import Instant
from holdfast.core.task import STATES, Task
from holdfast.core.task.attempts import AttemptRecord, list_attempts
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.tasks.ending import CancelTask, RequeueTask, ResolveTask
from holdfast.operations.bounds import REASON
from holdfast.store.contract import Reader
from holdfast.store.contract.reads import whole_history
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.dashboard import event_lines, held, ownership_timeline, task_filter
from holdfast.transport.dashboard.access.permissions import KEYS, TASKS, may_use
from holdfast.transport.dashboard.bulk import OPERATION, VERBS
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.dashboard.task_filter import DashboardFilter
from holdfast.transport.deadlines import read_effective
from holdfast.transport.http.request import HttpRefusal
from holdfast.transport.task_filter import NEWEST, find_tasks

PAGE_SIZE = 50
SCAN_LIMIT = 5_000
"""Tasks read for one page, at most."""
HISTORY = 100

_BAR_CLASSES = {tasks.COMPLETED: "completed", tasks.RELEASED: "released", tasks.SNOOZED: "released", "held": "held",
                tasks.HANDED_OVER: "released"}  # fmt: skip
"""CSS class of an attempt's bar by its outcome; other outcomes are their own class and drawn as a loss."""


async def show(request: PageRequest) -> TemplateResponse:
    """Tasks that match the filter of the address, newest first."""
    by, engine, filters = request.by, request.ctx.engine, task_filter.parse(request.query)
    before = request.query.get("before", "") or NEWEST

    def read_tasks(reader: Reader) -> dict[str, Any]:
        found = find_tasks(reader, by.account, filters, before, limit=PAGE_SIZE, scan_limit=SCAN_LIMIT)
        counts = reader.task_counts(by.account)
        return {
            "rows": _rows(found.tasks, reader, engine),
            "next_cursor": found.next_cursor,
            "types": sorted({task_type for task_type, _, _ in counts}),
            "tabs": _tabs(filters, counts),
            "any": bool(counts),
        }

    variables = await request.ctx.read(read_tasks)
    variables |= {
        "filters": filters,
        "before": request.query.get("before", ""),
        "verbs": [verb for verb in VERBS.values() if verb.state == filters.state] if may_use(by, OPERATION) else [],
        "operations": request.bulk_operations.list_running(by.account),
    }
    return TemplateResponse("tasks.html", variables)


async def show_one(request: PageRequest) -> TemplateResponse:
    """One task; if it has been removed, its events."""
    by, engine, task_id = request.by, request.ctx.engine, request.item

    def read_task(reader: Reader) -> dict[str, Any]:
        task = reader.row(Task, by.account, task_id)
        subject = subject_of(Task(by.account, task_id))
        if task is None and not reader.history(by.account, subject, limit=1):
            raise HttpRefusal(404, "there is no such task")
        found = list_attempts(whole_history(reader, by.account, subject, brief=True))
        return {
            "task": task,
            "id": task_id,
            "held": next(iter(_find_holdings([] if task is None else [task], reader, engine).values()), None),
            "timeline": ownership_timeline.timeline(
                [_ownership(each, reader.now) for each in found if each.claimed_at is not None]
            ),
            "attempts": found[::-1],
            "lines": event_lines.history(reader, by.account, subject, HISTORY),
            "key_names": key_names(reader, by),
            "last": None if task is None else tasks.last_attempt(task),
            "contract": "" if task is None else _agent_contract(read_effective(reader, [task])[0], reader.now),
            "now": reader.now,
        }

    return TemplateResponse("task.html", await request.ctx.read(read_task))


async def requeue(request: PageRequest) -> str:
    """Requeue a dead letter."""
    keep = request.form.get("keep") == "yes"
    await request.ctx.run(
        RequeueTask(account=request.account, cause=request.cause(), task_id=request.item, keep_count=keep),
    )
    return "requeued"


async def resolve(request: PageRequest) -> str:
    """Mark a dead letter as resolved."""
    await request.ctx.run(ResolveTask(account=request.account, cause=request.cause(), task_id=request.item))
    return "resolved"


async def cancel(request: PageRequest) -> str:
    """Cancel a task; a claimed one only by a request to its holder, or by force."""
    mode, reason = request.form.get("mode", "pending"), request.form.get("reason", "").strip() or None
    if request.form.get("sure") != "yes":
        raise Invalid("check the box to confirm")
    if mode not in {"pending", "request", "force"} or len(reason or "") > REASON.most:
        raise Invalid(f"the reason must have {REASON}")
    command = CancelTask(account=request.account, cause=request.cause(), task_id=request.item, mode=mode, reason=reason)  # type: ignore[arg-type]
    done = await request.ctx.run(command)
    return "cancelled" if done.task.state == tasks.CANCELLED else "requested"


def key_names(reader: Reader, by: Principal) -> dict[str, str]:
    """Names of the keys that events refer to by id; only administrators see the names of other keys."""
    keys = [key for key in reader.principals(by.account) if may_see_key(by, key)] if may_use(by, KEYS) else [by]
    return {key.id: key.name for key in keys} | {"sweep": "the sweep", "retention": "retention"}


def _tabs(
    filters: DashboardFilter, counts: list[tuple[str, str, int]]
) -> list[tuple[str, str, int | None, dict[str, str]]]:
    """(state, label, number of tasks if it is known, query parameters)."""
    rest = {name: value for name, value in filters.parameters.items() if name not in {"state", "open", "reason"}}
    is_counted = not (filters.tag or filters.key or filters.worker)
    tabs = []
    for state in ("", *STATES):
        total = sum(
            count for kind, found, count in counts if filters.type in {"", kind} and state in {"", found}
        )  # fmt: skip
        label = state.replace("_", " ") or "all"
        tabs.append((state, label, total if is_counted else None, rest | {"state": state}))
    return tabs


def _rows(found: list[Task], reader: Reader, engine: Engine) -> list[dict[str, Any]]:
    holdings = _find_holdings(found, reader, engine)
    return [
        {
            "task": task,
            "held": holdings.get(task.id),
            "age": reader.now - task.created_at,
            "changed": reader.now - task.changed_at,
            "due": max((task.scheduled_at or 0) - reader.wall, 0),
        }
        for task in found
    ]


def _find_holdings(found: list[Task], reader: Reader, engine: Engine) -> dict[str, held.Holding]:
    """The claimed tasks among these, by id."""
    claimed = [task for task in found if task.state == tasks.CLAIMED]
    return {holding.id: holding for holding in held.read_holdings(reader, claimed, engine)}


def _ownership(attempt: AttemptRecord, now: Instant) -> ownership_timeline.Ownership:
    since = attempt.claimed_at or now
    until = max(attempt.ended_at or now, since)
    how = attempt.outcome or "held"
    return ownership_timeline.Ownership(attempt.worker, since, until, _BAR_CLASSES.get(how, how))


def _agent_contract(task: Task, now: Instant) -> str:
    """The `agent_contract` that the API returns for the task now."""
    return msgspec.json.encode(task_advice.for_task(task, now)).decode()


PAGE = Page(
    "tasks",
    "Tasks",
    "t",
    TASKS,
    show,
    show_one,
    {"requeue": ("requeue_task", requeue), "resolve": ("resolve_task", resolve), "cancel": ("cancel_task", cancel)},
)
