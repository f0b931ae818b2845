"""Tasks for producers: create, list, cancel and read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.client.methods.base import Caller, R


class TaskMethods(Caller[R]):
    """Tasks for producers: create, list, cancel and read them."""

    def create_task(
        self,
        type: str,
        payload: dict[str, Any],
        *,
        priority: int | None = None,
        max_attempts: int | None = None,
        lease_duration_seconds: int | None = None,
        scheduled_at: str | None = None,
        idempotency_key: str | None = None,
        unique_key: str | None = None,
        on_duplicate: str | None = None,
        tag: str | None = None,
        created_by: str | None = None,
        reviewed_by: str | None = None,
        source: str | None = None,
        backoff: dict[str, Any] | None = None,
        depends_on: Sequence[str] | None = None,
        on_dependency_failure: str | None = None,
        deadline_at: str | None = None,
        max_run_seconds: int | None = None,
        requires: list[str] | None = None,
        concurrency_key: str | None = None,
        approval: bool | dict[str, Any] | None = None,
    ) -> R:
        """Create a task in the queue of its type.

        `unique_key` allows one open task per key; `scheduled_at` delays it; a higher `priority` is claimed first.
        `depends_on` are ids or unique keys of tasks that must complete first; if one fails, the task waits on (`hold`),
        is cancelled (`cancel`) or runs (`run`), by `on_dependency_failure`. Only a worker that has all the capabilities
        that it `requires` gets it. `deadline_at` ends the task, `max_run_seconds` each attempt: no lease lasts longer.
        No more tasks with the same `concurrency_key` run at once than their queue allows for each key. With `approval`
        a person must approve it before the first claim.
        """
        return self.call(
            "create_task",
            type=type,
            payload=payload,
            priority=priority,
            max_attempts=max_attempts,
            lease_duration_seconds=lease_duration_seconds,
            scheduled_at=scheduled_at,
            idempotency_key=idempotency_key,
            unique_key=unique_key,
            on_duplicate=on_duplicate,
            tag=tag,
            created_by=created_by,
            reviewed_by=reviewed_by,
            source=source,
            backoff=backoff,
            depends_on=None if depends_on is None else list(depends_on),
            on_dependency_failure=on_dependency_failure,
            deadline_at=deadline_at,
            max_run_seconds=max_run_seconds,
            requires=requires,
            concurrency_key=concurrency_key,
            approval=approval,
        )

    def list_tasks(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        type: str | None = None,
        status: str | None = None,
        tag: str | None = None,
        unique_key: str | None = None,
        waiting: str | None = None,
        worker: str | None = None,
        session_id: str | None = None,
        resolved: bool | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        updated_after: datetime | None = None,
        updated_before: datetime | None = None,
    ) -> R:
        """List tasks, newest first."""
        return self.call(
            "list_tasks",
            limit=limit,
            cursor=cursor,
            type=type,
            status=status,
            tag=tag,
            unique_key=unique_key,
            waiting=waiting,
            worker=worker,
            session_id=session_id,
            resolved=resolved,
            created_after=created_after,
            created_before=created_before,
            updated_after=updated_after,
            updated_before=updated_before,
        )

    def count_tasks(self) -> R:
        """Count the tasks by type and state."""
        return self.call("count_tasks")

    def batch_tasks(self, items: list[dict[str, Any]], *, full: bool | None = None) -> R:
        """Apply up to 1,000 task operations in one transaction."""
        return self.call("batch_tasks", items=items, full=full)

    def check_task_status(self, task_id: str, *, wait_seconds: float | None = None) -> R:
        """Read a task; `wait_seconds` waits until it is finished."""
        return self.call("check_task_status", id=task_id, wait_seconds=wait_seconds)

    def cancel_task(self, task_id: str, *, mode: str | None = None, reason: str | None = None) -> R:
        """Cancel a task. `mode` is `pending` (only if unclaimed), `request` (ask its holder) or `force`."""
        return self.call("cancel_task", id=task_id, mode=mode, reason=reason)

    def requeue_task(self, task_id: str, *, reset_attempts: bool | None = None) -> R:
        """Put a dead letter back into its queue."""
        return self.call("requeue_task", id=task_id, reset_attempts=reset_attempts)

    def resolve_task(self, task_id: str) -> R:
        """Mark a dead letter as resolved."""
        return self.call("resolve_task", id=task_id)

    def task_events(self, task_id: str, *, after: int | None = None, limit: int | None = None) -> R:
        """Read the events of a task."""
        return self.call("task_events", id=task_id, after=after, limit=limit)

    def task_attempts(self, task_id: str) -> R:
        """Read the attempts of a task: their workers and outcomes."""
        return self.call("task_attempts", id=task_id)

    def task_dependencies(self, task_id: str, *, limit: int | None = None, cursor: str | None = None) -> R:
        """Read what a task needs and what needs it."""
        return self.call("task_dependencies", id=task_id, limit=limit, cursor=cursor)
