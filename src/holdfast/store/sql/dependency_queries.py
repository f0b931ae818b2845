"""The statements about dependencies of tasks that both databases understand."""

from __future__ import annotations


def needs_dependencies(task: str) -> str:
    """Whether a row of tasks, by its alias, needs those that it depends on, as `core.task.needs_dependencies` says."""
    return f"({task}.state IN ('pending', 'claimed') OR ({task}.state = 'dead_letter' AND {task}.unmet > 0))"


DEPENDENTS = (
    "SELECT row.id, row.type, row.state, row.waits_for FROM task_dependencies AS edge CROSS JOIN tasks AS row"
    " WHERE edge.account = ? AND edge.needed = ? AND edge.dependent > ? AND row.account = edge.account"
    " AND row.id = edge.dependent ORDER BY edge.dependent LIMIT ?"
)
TASKS_WITH_RESULTS = (
    "SELECT id, type, state, waits_for, CASE WHEN octet_length(result) <= ? THEN result END,"
    " coalesce(octet_length(result), 0) FROM tasks WHERE account = ?"
    " AND id IN (SELECT value ->> 0 FROM json_each(?)) ORDER BY id"
)
