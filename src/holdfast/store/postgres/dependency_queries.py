"""The statements about dependencies that only PostgreSQL understands; `sqlite/dependency_queries.py` has them too.

The tasks themselves are locked before, so no dependent is added meanwhile. A dependent that another transaction has
locked is listed and not loaded: waiting for it here would be against the order of locks.
"""

from __future__ import annotations

from holdfast.core.task import Task
from holdfast.store.postgres.queries import and_now
from holdfast.store.sql.dependency_queries import needs_dependencies
from holdfast.store.sql.page_queries import columns

DEPENDENTS = (
    "SELECT wanted.value ->> 0, wanted.value ->> 1, edge.dependent FROM json_array_elements($1::json) AS wanted"
    " CROSS JOIN LATERAL (SELECT dependent FROM task_dependencies JOIN tasks AS row"
    f" ON row.account = task_dependencies.account AND row.id = dependent AND {needs_dependencies('row')}"
    " WHERE task_dependencies.account = wanted.value ->> 0 AND needed = wanted.value ->> 1"
    " AND dependent > wanted.value ->> 2 ORDER BY dependent LIMIT (wanted.value ->> 3)::int) AS edge"
)
DEPENDENT_TASKS = and_now(
    Task,
    f"SELECT {columns(Task)} FROM tasks WHERE (account, id) IN"
    f" (SELECT edges.account, edges.dependent FROM ({DEPENDENTS}) AS edges (account, needed, dependent))"
    " ORDER BY account, id FOR UPDATE SKIP LOCKED",
)
_EDGES = "SELECT * FROM json_to_recordset($1::json) AS new(c0 text, c1 text, c2 text)"
ADD_DEPENDENCIES = f"INSERT INTO task_dependencies (account, needed, dependent) {_EDGES}"
REMOVE_DEPENDENCIES = f"DELETE FROM task_dependencies WHERE (account, needed, dependent) IN ({_EDGES})"
