"""Bulk operation pages: confirmation with the number of tasks, then progress."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.errors import Invalid
from holdfast.transport.dashboard import bulk_selection, task_filter
from holdfast.transport.dashboard.bulk import FINISHED, OPERATION, VERBS, BulkOperation, BulkVerb, new_id
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.dashboard.task_filter import DashboardFilter
from holdfast.transport.http.request import HttpRefusal

MAX_DIGITS = 19
"""Enough for a 64-bit number."""


async def show(request: PageRequest) -> TemplateResponse:
    """The confirmation page: how many tasks match."""
    verb, filters = _parse_operation(request.form or request.query | {"ids": " ".join(request.selected)})
    counted = await bulk_selection.count(request.ctx, request.account, filters)
    variables = {
        "verb": verb,
        "filters": filters,
        "count": counted.count,
        "moment": counted.moment,
        "max_tasks": bulk_selection.MAX_TASKS,
        "scanned": 0 if counted.complete else bulk_selection.SCAN_LIMIT,
    }
    return TemplateResponse("bulk-confirm.html", variables)


async def show_one(request: PageRequest) -> TemplateResponse:
    """The progress page."""
    operation = _find_operation(request)
    return TemplateResponse("bulk.html", {"operation": operation, "finished": operation.state == FINISHED})


async def start(request: PageRequest) -> str:
    """Start with the tasks that were counted and still match, and no others."""
    verb, filters = _parse_operation(request.form)
    count, moment = _parse_number(request.form.get("count", "")), _parse_number(request.form.get("moment", ""))
    if _parse_number(request.form.get("typed", "")) != count:
        raise Invalid("type the number of tasks that was shown")
    request.bulk_operations.check(request.account, filters)
    ids = await bulk_selection.collect(request.ctx, request.account, filters, moment)
    if len(ids) > count:
        raise Invalid("more tasks match than were counted: load the page again")
    operation = BulkOperation(
        new_id(),
        verb,
        filters,
        request.browser_session,
        request.cause(),
        request.by.name,
        started_at=moment,
        total=len(ids),
    )
    request.bulk_operations.start(operation, ids)
    request.item = operation.id
    return "started"


async def stop(request: PageRequest) -> str:
    """Stop after the batch in progress."""
    _find_operation(request).stopping = True
    return "stopping"


def _find_operation(request: PageRequest) -> BulkOperation:
    operation = request.bulk_operations.find(request.account, request.item)
    if operation is None:
        raise HttpRefusal(404, "there is no such bulk operation on this server")
    return operation


def _parse_operation(fields: Mapping[str, str]) -> tuple[BulkVerb, DashboardFilter]:
    verb, filters = VERBS.get(fields.get("verb", "")), task_filter.parse(fields)
    if verb is not None and filters.ids:
        filters = DashboardFilter(state=verb.state, ids=filters.ids)
    elif fields.get("selection"):
        raise Invalid("select at least one task")
    if verb is None or filters.state != verb.state:
        raise Invalid("choose a task state that this operation applies to")
    return verb, filters


def _parse_number(text: str) -> int:
    """A number as people type it: 5,000 is 5000."""
    digits = text.replace(",", "").replace(" ", "").replace("\u202f", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
        raise Invalid("type the number of tasks that was shown")
    return int(digits)


PAGE = Page(
    "bulk",
    "Bulk operation",
    "",
    OPERATION,
    show,
    show_one,
    {"start": (OPERATION, start), "stop": (OPERATION, stop)},
    parent="tasks",
)
