"""What a session holds, page by page: jobs by id, then tasks by id."""

from __future__ import annotations

import base64
from typing import NamedTuple

from holdfast.core.deadlines import with_effective_deadline
from holdfast.core.event_filter import READ_SCOPES
from holdfast.core.lease import Lease
from holdfast.core.page import PAGE_BYTES, cut, record_size
from holdfast.core.principal import Principal
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.contract import Reader
from holdfast.transport.http.api.cursors import check_known, invalid_cursor

LIMIT = 1_000
"""Jobs, and as many tasks, on one page."""
_TYPES: dict[str, type[Lease | Task]] = {Lease.table: Lease, Task.table: Task}


class HoldingsPage(NamedTuple):
    """Some jobs and tasks of a session, with their effective deadlines."""

    jobs: list[Lease]
    tasks: list[Task]
    next_cursor: str | None
    """None if these are the last."""


def read_holdings(reader: Reader, session: Session, by: Principal, cursor: str | None) -> HoldingsPage:
    """The page after a cursor, of what the key may read, in about `PAGE_BYTES` bytes."""
    table, after = (Lease.table, "") if cursor is None else _parse_cursor(cursor)
    if after:
        check_known(reader, _TYPES[table], session.account, after)
    key = (session.account, session.id)
    jobs: list[Lease] = []
    if table == Lease.table and by.may(READ_SCOPES[Lease.noun]):
        jobs, more = cut(reader.holdings(Lease, key, after, LIMIT + 1, PAGE_BYTES), LIMIT)
        if more:
            return HoldingsPage(_effective(jobs, session), [], _format_cursor(jobs[-1]))
    if not by.may(READ_SCOPES[Task.noun]):
        return HoldingsPage(_effective(jobs, session), [], None)
    after, left = after if table == Task.table else "", max(PAGE_BYTES - sum(map(record_size, jobs)), 1)
    tasks, more = cut(reader.holdings(Task, key, after, LIMIT + 1, left), LIMIT, left)
    held = [with_effective_deadline(task, session) for task in tasks]
    return HoldingsPage(_effective(jobs, session), held, _format_cursor(tasks[-1]) if more else None)


def _effective(jobs: list[Lease], session: Session) -> list[Lease]:
    return [with_effective_deadline(job, session) for job in jobs]


def _format_cursor(row: Lease | Task) -> str:
    return base64.urlsafe_b64encode(f"{row.table}\n{row.id}".encode()).decode().rstrip("=")


def _parse_cursor(text: str) -> tuple[str, str]:
    try:
        table, _, after = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition("\n")
    except ValueError:
        table = after = ""
    if table not in _TYPES or not after or "\0" in after:
        raise invalid_cursor()
    return table, after
