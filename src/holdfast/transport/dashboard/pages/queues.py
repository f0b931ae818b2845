"""Queues page: every queue with its settings, work that no live worker can take, and forms to pause and limit."""

from __future__ import annotations

import msgspec

from holdfast.core.errors import Invalid
from holdfast.core.page import PAGE_BYTES
from holdfast.core.row import Instant
from holdfast.core.task import CLAIMED, PENDING
from holdfast.core.task.missing_workers import LiveWorker, ReadyWork, without_worker
from holdfast.core.task.queue import Queue
from holdfast.engine.engine import Engine
from holdfast.operations.bounds import QUEUE_LIMIT
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.access.permissions import QUEUES, may_use
from holdfast.transport.dashboard.lists.held_work import MAX_ROWS
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.http.api.queues import change_settings
from holdfast.transport.http.orchestrion.tasks import TYPE
from holdfast.transport.http.request import HttpRefusal

MAX_QUEUES = 500
"""Queues with settings, and queues without, that the page lists at most."""
MAX_WORK = 1_000
"""Kinds of ready work that are compared with the workers at most."""
MANY_KINDS = 100
"""With more kinds of ready work than this, what the page shows of it may be two seconds old."""


class QueueRow(msgspec.Struct, frozen=True):
    """A queue of the list."""

    queue: Queue
    running: int
    pending: int


async def show(request: PageRequest) -> TemplateResponse:
    """Every queue that has tasks or settings."""
    account = request.account
    rows = await request.ctx.read(lambda reader: _read_rows(reader, account))
    variables = {
        "rows": rows[:MAX_QUEUES],
        "more": len(rows) > MAX_QUEUES,
        "without_worker": await read_without_worker(request),
        "may_change": may_use(request.by, "set_queue"),
    }
    return TemplateResponse("queues.html", variables)


async def show_one(request: PageRequest) -> TemplateResponse:
    """One queue, and the forms to change its settings."""
    account, task_type = request.account, _checked_type(request)
    rows = await request.ctx.read(lambda reader: _read_rows(reader, account))
    row = next((row for row in rows if row.queue.id == task_type), QueueRow(Queue(account, task_type), 0, 0))
    found = [(work, age) for work, age in await read_without_worker(request) if work.type == task_type]
    variables = {
        "row": row,
        "without_worker": found,
        "may_change": may_use(request.by, "set_queue"),
        "most": QUEUE_LIMIT.most,
    }
    return TemplateResponse("queue.html", variables)


async def pause(request: PageRequest) -> str:
    """Let no more tasks be claimed."""
    await _change(request, paused=True)
    return "paused"


async def drain(request: PageRequest) -> str:
    """Pause, and show on the page how many tasks still run."""
    await _change(request, paused=True)
    return "draining"


async def resume(request: PageRequest) -> str:
    """Let tasks be claimed again."""
    await _change(request, paused=False)
    return "resumed"


async def limit(request: PageRequest) -> str:
    """Limit how many tasks run, in all and with the same key; empty or 0 for no limit."""
    limits: dict[str, int | None] = {}
    for name in ("max_running", "max_running_per_key"):
        text = request.form.get(name, "").strip() or "0"
        if not text.isascii() or not text.isdigit() or int(text) > QUEUE_LIMIT.most:
            raise Invalid(f"the limit must be a whole number from {QUEUE_LIMIT}")
        if name in request.form:
            limits[name] = int(text) or None
    await _change(request, **limits)
    return "limited"


async def read_without_worker(request: PageRequest) -> list[tuple[ReadyWork, Instant]]:
    """Work that no live worker can take, and how long it has waited.

    All workers of the account count, also those that the key may not see: the answer names none of them.
    """
    account, ctx = request.account, request.ctx

    def read(reader: Reader) -> tuple[list[ReadyWork], list[LiveWorker], Instant]:
        return reader.ready_work(account, MAX_WORK), live_workers(reader, account, ctx.engine), reader.now

    work, workers, now = await request.cache.get(
        ("ready work", account), lambda: ctx.read(read), lambda found: len(found[0]) + len(found[1]) > MANY_KINDS
    )
    return [(each, now - each.since) for each in without_worker(work, workers, now)]


async def paused_queues(request: PageRequest) -> list[str]:
    """The types of paused queues, for other pages."""
    account = request.account
    return await request.ctx.read(lambda reader: [row.id for row in _settings(reader, account) if row.paused])


def live_workers(reader: Reader, account: str, engine: Engine) -> list[LiveWorker]:
    """What is known of the workers of an account: open sessions, callers that wait here, and holders of tasks."""
    sessions = reader.sessions(account, "", MAX_ROWS, PAGE_BYTES, live=True)
    holders = reader.next_to_expire(account, MAX_ROWS, PAGE_BYTES)
    found = {LiveWorker("", session.capabilities or "") for session in sessions}
    found |= {LiveWorker(task_type, words) for task_type, words in engine.task_waiters.kinds(account)}
    found |= {LiveWorker(task.type, task.requires or "") for task in holders}
    return list(found)


async def _change(request: PageRequest, **changes: bool | int | None) -> None:
    await change_settings(request.ctx, request.account, request.cause(), _checked_type(request), changes)


def _checked_type(request: PageRequest) -> str:
    if TYPE.fullmatch(request.item) is None:
        raise HttpRefusal(404, "there is no such queue")
    return request.item


def _settings(reader: Reader, account: str) -> list[Queue]:
    return [row for row in reader.rows_after(Queue, account, "", MAX_QUEUES) if row.account == account]


def _read_rows(reader: Reader, account: str) -> list[QueueRow]:
    """Queues with settings or with open tasks, by type."""
    counts = {(task_type, state): total for task_type, state, total in reader.task_counts(account)}
    queues = {task_type: Queue(account, task_type) for task_type, state in counts if state in {PENDING, CLAIMED}}
    queues |= {row.id: row for row in _settings(reader, account)}
    return [
        QueueRow(queue, counts.get((task_type, CLAIMED), 0), counts.get((task_type, PENDING), 0))
        for task_type, queue in sorted(queues.items())
    ]


PAGE = Page(
    "queues",
    "Queues",
    "u",
    QUEUES,
    show,
    show_one,
    {
        "pause": ("set_queue", pause),
        "drain": ("set_queue", drain),
        "resume": ("set_queue", resume),
        "limit": ("set_queue", limit),
    },
)
