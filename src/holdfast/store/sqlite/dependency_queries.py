"""The statements about dependencies that only SQLite understands; `postgres/dependency_queries.py` has them too."""

from __future__ import annotations

from holdfast.store.sql.dependency_queries import needs_dependencies

DEPENDENTS = (
    "SELECT edge.dependent FROM task_dependencies AS edge CROSS JOIN tasks AS row"
    f" ON row.account = edge.account AND row.id = edge.dependent AND {needs_dependencies('row')}"
    " WHERE edge.account = ? AND edge.needed = ? AND edge.dependent > ? ORDER BY edge.dependent LIMIT ?"
)
ADD_DEPENDENCIES = (
    "INSERT OR ROLLBACK INTO task_dependencies (account, needed, dependent)"
    " SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)"
)
REMOVE_DEPENDENCIES = (
    "DELETE FROM task_dependencies WHERE (account, needed, dependent) IN"
    " (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))"
)
