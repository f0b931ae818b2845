"""Tasks: what waits, what is worked on, what came of the rest; one of them in full."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import task as tasks
from holdfast.core.errors import Invalid
from holdfast.core.event import RENEWALS, Event, subject_of
from holdfast.core.principal import Principal
from holdfast.core.row import Instant
from holdfast.core.task import STATES, Task
from holdfast.core.task.attempts import AttemptRecord, list_attempts
from holdfast.engine.verbs.tasks.outcomes import CancelTask, RequeueTask, ResolveTask
from holdfast.store.contract import Reader
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.dashboard import event_lines, held, ownership_timeline, task_filter
from holdfast.transport.dashboard.bulk import RUNNING, SCOPE, VERBS
from holdfast.transport.dashboard.page import Page, Shown, Visit
from holdfast.transport.dashboard.permissions import KEYS, TASKS
from holdfast.transport.dashboard.task_filter import NEWEST, Wanted
from holdfast.transport.http.orchestrion.task_verbs import MAX_REASON
from holdfast.transport.http.request import HttpRefusal

PAGE_SIZE = 50
LOOKED_AT = 5_000
"""A page is found by looking at no more tasks than this."""
HISTORY = 100

_GOOD = {tasks.COMPLETED: "completed", tasks.RELEASED: "released", tasks.SNOOZED: "released", "held": "held"}
"""Ends of an attempt that are no loss, and how they are drawn."""


async def show(visit: Visit) -> Shown:
    """Tasks, newest first, by the filter of the address."""
    by, asked = visit.by, task_filter.read(visit.query)
    before = visit.query.get("before", "") or NEWEST

    def find(reader: Reader) -> dict[str, Any]:
        found = task_filter.look(reader, by.account, asked, before, limit=PAGE_SIZE, most=LOOKED_AT)
        counts = reader.task_counts(by.account)
        return {
            "rows": [_row(task, found.now) for task in found.tasks],
            "following": found.following,
            "types": sorted({task_type for task_type, _, _ in counts}),
            "tabs": _tabs(asked, counts),
            "any": bool(counts),
        }

    told = await visit.ctx.read(find)
    told |= {
        "asked": asked,
        "before": visit.query.get("before", ""),
        "verbs": [verb for verb in VERBS.values() if verb.state == asked.state] if by.may(SCOPE) else [],
        "bulks": [bulk for bulk in visit.bulks.of(by.account) if bulk.state == RUNNING],
    }
    return Shown("tasks.html", told)


async def show_one(visit: Visit) -> Shown:
    """Everything about a task, also about one whose story is all that is left."""
    by, task_id = visit.by, visit.item

    def find(reader: Reader) -> dict[str, Any]:
        task = reader.row(Task, by.account, task_id)
        history = reader.history(by.account, subject_of(Task(by.account, task_id)))
        if task is None and not history:
            raise HttpRefusal(404, "there is no such task")
        tried = list_attempts(history)
        return {
            "task": task,
            "id": task_id,
            "held": _held(task, reader.now),
            "lanes": ownership_timeline.lanes(
                [_ownership(each, reader.now) for each in tried if each.claimed_at is not None]
            ),
            "attempts": tried[::-1],
            "lines": _story(history, reader.now),
            "names": names(reader, by),
            "before": None if task is None else tasks.last_attempt(task),
            "contract": "" if task is None else _contract(task, reader.now),
            "now": reader.now,
        }

    return Shown("task.html", await visit.ctx.read(find))


async def requeue(visit: Visit) -> str:
    """Give a dead letter another life."""
    keep = visit.form.get("keep") == "yes"
    await visit.ctx.run(
        RequeueTask(account=visit.account, cause=visit.cause(), task_id=visit.item, keep_count=keep),
    )
    return "requeued"


async def resolve(visit: Visit) -> str:
    """A dead letter has been dealt with."""
    await visit.ctx.run(ResolveTask(account=visit.account, cause=visit.cause(), task_id=visit.item))
    return "resolved"


async def cancel(visit: Visit) -> str:
    """Nobody needs it any more; one that is held ends only if that is said."""
    mode, reason = visit.form.get("mode", "pending"), visit.form.get("reason", "").strip() or None
    if visit.form.get("sure") != "yes":
        raise Invalid("say that you are sure")
    if mode not in {"pending", "request", "force"} or len(reason or "") > MAX_REASON:
        raise Invalid(f"a reason has at most {MAX_REASON} characters")
    command = CancelTask(account=visit.account, cause=visit.cause(), task_id=visit.item, mode=mode, reason=reason)  # type: ignore[arg-type]
    done = await visit.ctx.run(command)
    return "cancelled" if done.task.state == tasks.CANCELLED else "asked"


def names(reader: Reader, by: Principal) -> dict[str, str]:
    """What the keys are called that the log names by their ids; of others' keys only administrators know."""
    known = reader.principals(by.account) if by.may(KEYS) else [by]
    return {key.id: key.name for key in known} | {"sweep": "the sweep", "retention": "retention"}


def _tabs(asked: Wanted, counts: list[tuple[str, str, int]]) -> list[tuple[str, str, int | None, dict[str, str]]]:
    """(state, word, how many if that is known, where it leads)."""
    rest = {name: value for name, value in asked.given.items() if name not in {"state", "open", "reason"}}
    known = not (asked.tag or asked.key or asked.worker)
    tabs = []
    for state in ("", *STATES):
        many = sum(
            number for kind, found, number in counts if asked.type in {"", kind} and state in {"", found}
        )  # fmt: skip
        tabs.append((state, state.replace("_", " ") or "all", many if known else None, rest | {"state": state}))
    return tabs


def _row(task: Task, now: Instant) -> dict[str, Any]:
    return {"task": task, "held": _held(task, now), "age": now - task.created_at, "changed": now - task.changed_at,
            "due": max((task.scheduled_at or 0) - now, 0)}  # fmt: skip


def _held(task: Task | None, now: Instant) -> held.Holding | None:
    return held.of_task(task, now) if task is not None and task.state == tasks.CLAIMED else None


def _ownership(tried: AttemptRecord, now: Instant) -> ownership_timeline.Ownership:
    since = tried.claimed_at or now
    how = tried.outcome or "held"
    return ownership_timeline.Ownership(tried.worker, since, max(tried.ended_at or now, since), _GOOD.get(how, how))


def _story(history: list[Event], now: Instant) -> list[event_lines.Line]:
    """Newest first, without the signs of life."""
    news = [event for event in history if event.kind not in RENEWALS]
    return [event_lines.line(event, now) for event in news[: -HISTORY - 1 : -1]]


def _contract(task: Task, now: Instant) -> str:
    """What the API would tell an agent about it just now."""
    return msgspec.json.encode(task_advice.for_task(task, now)).decode()


PAGE = Page(
    "tasks",
    "Tasks",
    "t",
    TASKS,
    show,
    show_one,
    {"requeue": (SCOPE, requeue), "resolve": (SCOPE, resolve), "cancel": (SCOPE, cancel)},
)
