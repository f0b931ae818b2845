"""Base of the task commands, and their outcome."""

from __future__ import annotations

from typing import Self

from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.plan import Allowance
from holdfast.core.task import Task
from holdfast.engine.batches.steps import with_token
from holdfast.engine.command import Command, Outcome
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class TaskOutcome(Outcome, frozen=True):
    """The task as it is now."""

    task: Task

    def with_tokens(self, tokens: list[int]) -> Self:
        """The outcome with the token drawn for it."""
        return self if self.task.token >= 0 else replace(self, task=with_token(self.task, tokens))


class TaskCommand(Command[TaskOutcome], frozen=True):
    """A command about one task."""

    task_id: str

    def needs(self) -> Needs:
        """The task."""
        return Needs(rows=((Task.table, self.account, self.task_id),))

    def task(self, view: View) -> Task:
        """The task, or TaskMissing."""
        return tasks.check_found(view.find(Task, self.account, self.task_id))


def metered_accounts(account: str, allowance: Allowance | None) -> tuple[str, ...]:
    """The account, if its usage must be loaded to check its limits."""
    return (account,) if allowance is not None and allowance.is_metered else ()
