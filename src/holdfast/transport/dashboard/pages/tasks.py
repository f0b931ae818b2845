"""Tasks page: tasks by state and filter, and one task with its attempts."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import msgspec

from holdfast.core import task as tasks
from holdfast.core.errors import Invalid
from holdfast.core.event import subject_of
from holdfast.core.holdings.spans import HELD, Span
from holdfast.core.plan import CREATE
from holdfast.core.principal import Principal, may_see_key
from holdfast.core.row import Instant
from holdfast.core.task import PHASES, STATES, Task, phase
from holdfast.core.task.attempts import AttemptRecord, list_attempts
from holdfast.decoding import decode
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.tasks.cancelling import CancelTask, RequeueTask, ResolveTask
from holdfast.operations.bounds import REASON, TASK_MAX_ATTEMPTS, TASK_PRIORITY
from holdfast.store.contract import Reader
from holdfast.store.contract.reads import usable_row, whole_history
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.dashboard import event_lines, held, ownership_timeline, task_filter
from holdfast.transport.dashboard.access.permissions import KEYS, QUEUES, TASKS, may_use
from holdfast.transport.dashboard.bulk import OPERATION, VERBS
from holdfast.transport.dashboard.dependencies import read_relations
from holdfast.transport.dashboard.failure_groups import failure_text
from holdfast.transport.dashboard.lists.paging import Column, make_listing
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.dashboard.pages.queues import paused_queues
from holdfast.transport.dashboard.task_filter import DashboardFilter
from holdfast.transport.deadlines import read_effective
from holdfast.transport.full_queues import with_queue_limits
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.orchestrion.tasks import CreateBody, create_command, new_task_id
from holdfast.transport.http.request import HttpRefusal
from holdfast.transport.task_filter import NEWEST, SCAN_PAGE, TaskPage, find_tasks

PAGE_SIZE = 50
SCAN_LIMIT = 5_000
"""Tasks read for one page, at most."""
HISTORY = 100

MAX_SORTED = 1_000
"""Newest matching tasks that are sorted by another column than their creation."""


class Listed(NamedTuple):
    """A task of the list, without its documents, and what its payload says in a few words."""

    task: Task
    summary: str


COLUMNS: tuple[Column[Listed], ...] = (
    Column("created", "Created", lambda each: (each.task.created_at, each.task.id), largest_first=True),
    Column("type", "Task", lambda each: (each.task.type, each.task.id)),
    Column("state", "State", lambda each: (STATES.index(each.task.state), each.task.id)),
    Column("priority", "Priority", lambda each: (each.task.priority, each.task.id), largest_first=True),
    Column("attempts", "Attempts", lambda each: (each.task.attempt_count, each.task.id), largest_first=True),
    Column("changed", "Changed", lambda each: (each.task.changed_at, each.task.id), largest_first=True),
)


async def show(request: PageRequest) -> TemplateResponse:
    """Tasks that match the filter of the address, newest first, or sorted by another column."""
    by, engine, filters = request.by, request.ctx.engine, task_filter.parse(request.query)
    is_sorted = "sort" in request.query
    before = "" if is_sorted else request.query.get("before", "")
    if is_sorted:
        found, more = await request.cache.get(
            ("tasks to sort", by.account, filters),
            lambda: _collect(request.ctx, by.account, filters),
            lambda result: len(result[0]) > SCAN_PAGE,
        )
    else:
        found, more = await request.ctx.read(lambda reader: _read_page(reader, by.account, filters, before))
    size = PAGE_SIZE if is_sorted else len(found) or 1
    listing = make_listing(found, COLUMNS, request.query, filters.parameters, size)
    verbs = list(VERBS.values()) if may_use(by, OPERATION) else []

    def read_tasks(reader: Reader) -> dict[str, Any]:
        counts = reader.task_counts(by.account)
        return {
            "rows": _rows(listing.rows, reader, engine),
            "types": sorted({task_type for task_type, _, _ in counts}),
            "tabs": _tabs(filters, counts),
            "any": bool(counts),
        }

    variables = await request.ctx.read(read_tasks)
    variables |= {
        "paused": await paused_queues(request) if may_use(by, QUEUES) else [],
        "listing": listing,
        "sorted_only": len(found) if is_sorted and more else 0,
        "next_cursor": "" if is_sorted else more,
        "filters": filters,
        "phases": PHASES,
        "before": before,
        "all_verbs": [verb for verb in verbs if verb.state == filters.state],
        "verbs": [verb for verb in verbs if filters.state in {"", verb.state}],
        "may_create": may_use(by, "create_task"),
        "operations": request.bulk_operations.list_running(by.account),
    }
    return TemplateResponse("tasks.html", variables)


async def create(request: PageRequest) -> str:
    """Create a task."""
    form = request.form
    try:
        payload = decode(form.get("payload", "").strip() or "{}", msgspec.Raw)
        priority = int(form.get("priority", "").strip() or TASK_PRIORITY.default)
        max_attempts = int(form.get("max_attempts", "").strip() or TASK_MAX_ATTEMPTS.default)
    except (msgspec.DecodeError, RecursionError):
        raise Invalid("`payload` must be a JSON object") from None
    except ValueError:
        raise Invalid("`priority` and `maxAttempts` must be whole numbers") from None
    body = CreateBody(
        type=form.get("type", "").strip(),
        payload=payload,
        tag=form.get("tag", "").strip() or None,
        unique_key=form.get("key", "").strip() or None,
        priority=priority,
        max_attempts=max_attempts,
    )
    await request.ctx.charge(request.http, CREATE)
    created = await request.ctx.run(create_command(request.http, body, new_task_id(), None))
    request.item = created.task.id
    return "exists" if created.deduplicated else "created"


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
            "waits_for": None if task is None else with_queue_limits(reader, by.account, [task])[0].waits_for,
            "id": task_id,
            "relations": None if task is None else read_relations(reader, task),
            "word": "" if task is None else phase(task) if task.state == tasks.PENDING else task.state,
            "held": next(iter(_find_holdings([] if task is None else [task], reader, engine).values()), None),
            "timeline": ownership_timeline.timeline(
                [_span(task_id, each, reader.now) for each in found if each.claimed_at is not None]
            ),
            "attempts": found[::-1],
            "lines": event_lines.history(reader, by.account, subject, HISTORY),
            "key_names": key_names(reader, by),
            "last": None if task is None else tasks.last_attempt(task),
            "failure": "" if task is None else failure_text(task),
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


def _read_page(reader: Reader, account: str, filters: DashboardFilter, before: str) -> tuple[list[Listed], str]:
    """One page, newest first, and the cursor of the next one. A whole id finds its task, however old it is."""
    page = find_tasks(reader, account, filters, before or NEWEST, limit=PAGE_SIZE, scan_limit=SCAN_LIMIT)
    found = page.tasks
    if filters.q and not before:
        named = usable_row(reader, Task, account, filters.q)
        if named is not None and filters.matches(named) and named.id not in {task.id for task in found}:
            found = [named, *found]
    return [_listed(task) for task in found], page.next_cursor


async def _collect(ctx: HandlerContext, account: str, filters: DashboardFilter) -> tuple[list[Listed], str]:
    """The newest tasks that match, to be sorted, and a cursor if there are more. Each page is a read of its own."""
    found: list[Listed] = []
    before = NEWEST
    for _ in range(0, SCAN_LIMIT, SCAN_PAGE):
        page: TaskPage = await ctx.read(partial(_scan, account=account, filters=filters, before=before))
        found += [_listed(task) for task in page.tasks]
        before = page.next_cursor
        if not before or len(found) >= MAX_SORTED:
            break
    return found, before


def _scan(reader: Reader, account: str, filters: DashboardFilter, before: str) -> TaskPage:
    return find_tasks(reader, account, filters, before, limit=SCAN_PAGE, scan_limit=SCAN_PAGE)


def _listed(task: Task) -> Listed:
    return Listed(held.brief(task), held.summary_of(task))


def key_names(reader: Reader, by: Principal) -> dict[str, str]:
    """Names of the keys that events refer to by id; only administrators see the names of other keys."""
    keys = [key for key in reader.principals(by.account) if may_see_key(by, key)] if may_use(by, KEYS) else [by]
    return {key.id: key.name for key in keys} | {"sweep": "the sweep", "retention": "retention"}


def _tabs(
    filters: DashboardFilter, counts: list[tuple[str, str, int]]
) -> list[tuple[str, str, int | None, dict[str, str]]]:
    """(state, label, number of tasks if it is known, query parameters)."""
    rest = {
        name: value for name, value in filters.parameters.items() if name not in {"state", "phase", "open", "reason"}
    }
    is_counted = not rest.keys() - {"type"}
    tabs = []
    for state in ("", *STATES):
        total = sum(
            count for kind, found, count in counts if filters.type in {"", kind} and state in {"", found}
        )  # fmt: skip
        label = state.replace("_", " ") or "all"
        tabs.append((state, label, total if is_counted else None, rest | {"state": state}))
    return tabs


def _rows(found: list[Listed], reader: Reader, engine: Engine) -> list[dict[str, Any]]:
    holdings = _find_holdings([each.task for each in found], reader, engine)
    return [
        {
            "task": task,
            "summary": summary,
            "state": phase(task) if task.state == tasks.PENDING else task.state,
            "held": holdings.get(task.id),
            "age": reader.now - task.created_at,
            "changed": reader.now - task.changed_at,
            "due": max((task.scheduled_at or 0) - reader.wall, 0),
        }
        for task, summary in found
    ]


def _find_holdings(found: list[Task], reader: Reader, engine: Engine) -> dict[str, held.Holding]:
    """The claimed tasks among these, by id."""
    claimed = [task for task in found if task.state == tasks.CLAIMED]
    return {holding.id: holding for holding in held.read_holdings(reader, claimed, engine)}


def _span(task_id: str, attempt: AttemptRecord, now: Instant) -> Span:
    since = attempt.claimed_at or now
    until = max(attempt.ended_at or now, since)
    return Span(Task.noun, task_id, attempt.worker, since, until, attempt.outcome or HELD, kind=Task.noun)


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
    {
        "create": ("create_task", create),
        "requeue": ("requeue_task", requeue),
        "resolve": ("resolve_task", resolve),
        "cancel": ("cancel_task", cancel),
    },
)
