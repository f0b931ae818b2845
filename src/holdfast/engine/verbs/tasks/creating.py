"""Creating tasks, with at most one live task per unique key."""

from __future__ import annotations

from holdfast.core import task as tasks
from holdfast.core.plan import Allowance
from holdfast.core.task import Task
from holdfast.engine.command import Command
from holdfast.engine.expiry import expire_task_if_due
from holdfast.engine.verbs.tasks.base import TaskOutcome, metered_accounts
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class Created(TaskOutcome, frozen=True):
    """The new task, or the live one with the same unique key."""

    deduplicated: bool = False

    @property
    def binding(self) -> bool:
        """Always: an Idempotency-Key answered with an existing task must never create another."""
        return True


class CreateTask(Command[Created], frozen=True):
    """Create a task, unless a live one has the same unique key."""

    task: Task
    replace_payload: bool = False
    allowance: Allowance | None = None
    """The limits of the account; None without plans."""

    def needs(self) -> Needs:
        """The live task with its unique key, and the usage of the account; nothing for a new id."""
        key, metered = self.task.unique_key, metered_accounts(self.account, self.allowance)
        if key is None:
            return Needs(usage=metered)
        return Needs(unique_keys=((self.account, key),), spare=int(self.replace_payload), usage=metered)

    def size(self) -> int:
        """The size of its payload."""
        return len(self.task.payload)

    def decide(self, view: View) -> Created:
        """The new task, or the existing one."""
        if self.task.unique_key is not None:
            live = view.live_task_under(self.account, self.task.unique_key)
            live = None if live is None else expire_task_if_due(view, live)
            if live is not None and live.state in tasks.LIVE_STATES:
                if self.replace_payload and live.state == tasks.PENDING:
                    live = view.put(tasks.replace_work(live, self.task, view.wall), "replaced")
                return Created(task=view.effective(live), now=view.now, deduplicated=True)
        if self.allowance is not None:
            if self.allowance.is_metered:
                self.allowance.check_quota(view.usage(self.account), view.now)
            view.charge(self.account, self.allowance.cycle(view.now))
        return Created(task=view.put(tasks.create(self.task, view.now, view.wall), "created"), now=view.now)
