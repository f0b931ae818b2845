"""Statements that SQLite and PostgreSQL share, about holdings and questions; written as in `queries.py`."""

from __future__ import annotations

from holdfast.core.lease import Lease
from holdfast.core.question import Question
from holdfast.core.reservation.row import Reservation
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.sql.page_queries import columns, page_of
from holdfast.store.sql.queries import held_tasks

HOLDINGS = {
    Lease.table: page_of(Lease, "account = ? AND session = ? AND ephemeral AND id > ?", "id"),
    Reservation.table: page_of(Reservation, "account = ? AND session = ? AND proof IS NOT NULL AND id > ?", "id"),
    Task.table: page_of(Task, "account = ? AND session = ? AND id > ?", "id"),
}
RESERVATIONS = page_of(Reservation, "account = ? AND ended_at IS NULL AND (space, id) > (?, ?)", "space", "id")
RESERVATIONS_OF_SPACE = page_of(Reservation, "account = ? AND space = ? AND ended_at IS NULL AND id > ?", "id")
RESERVATIONS_COVERING = (
    f"SELECT {columns(Reservation)} FROM reservations WHERE account = ? AND id IN (SELECT paths.id"
    " FROM json_each(?) AS wanted CROSS JOIN reserved_paths AS paths WHERE paths.account = ? AND paths.space = ?"
    " AND paths.prefix = wanted.value ->> 0) ORDER BY id"
)
OPEN_QUESTIONS = page_of(Question, "account = ? AND state = 'open' AND (asked_at, id) > (?, ?)", "asked_at", "id")
CLOSED_QUESTIONS = page_of(
    Question, "account = ? AND state <> 'open' AND (asked_at, id) < (?, ?)", "asked_at", "id", order="DESC"
)
COUNT_OPEN_QUESTIONS = (
    "SELECT count(*) FROM (SELECT 1 FROM questions WHERE account = ? AND state = 'open' LIMIT ?) AS counted"
)
QUESTIONS_OF_TASKS = (
    "SELECT row.task, row.id FROM json_each(?) AS wanted CROSS JOIN questions AS row"
    " WHERE row.account = ? AND row.task = wanted.value ->> 0 ORDER BY row.id"
)
# `coalesce` keeps PostgreSQL from using the indexes by deadline, which have the rows of all accounts.
HELD_BY = {
    Lease.table: page_of(
        Lease,
        "account = ? AND id > ? AND proof IS NOT NULL AND coalesce(expires_at, 0) > ? AND principal = ?"
        " AND (CAST(? AS text) IS NULL OR owner = ?) AND kind IN ('job', 'lock')",
        "id",
    ),
    # The counts list the types of which any task is claimed; each is one range of the index tasks_listed.
    Task.table: page_of(
        Task,
        "(account, id) IN (SELECT held.account, held.id FROM task_counts AS counted CROSS JOIN tasks AS held"
        " WHERE counted.account = ? AND counted.state = 'claimed' AND counted.total > 0"
        " AND held.account = counted.account AND held.type = counted.type AND held.state = counted.state"
        " AND held.id > ? AND coalesce(held.expires_at, 0) > ? AND held.principal = ?"
        " AND (CAST(? AS text) IS NULL OR held.worker = ?))",
        "id",
    ),
    Reservation.table: page_of(
        Reservation,
        "account = ? AND id > ? AND ended_at IS NULL AND proof IS NOT NULL AND coalesce(expires_at, 0) > ?"
        " AND principal = ?"
        " AND (CAST(? AS text) IS NULL OR owner = ?)",
        "id",
    ),
    Session.table: page_of(
        Session,
        "account = ? AND id > ? AND ended_at IS NULL AND expires_at > ? AND principal = ?"
        " AND (CAST(? AS text) IS NULL OR name = ?) AND name IS NOT NULL",
        "id",
    ),
}
COUNT_HELD = (
    "SELECT (SELECT count(*) FROM leases WHERE account = ? AND proof IS NOT NULL AND coalesce(expires_at, 0) > ?"
    " AND coalesce(kind, '') <> 'election'),"
    " (SELECT count(*) FROM reservations WHERE account = ? AND ended_at IS NULL AND proof IS NOT NULL"
    f" AND coalesce(expires_at, 0) > ?), ({held_tasks('?', '?')})"
)
