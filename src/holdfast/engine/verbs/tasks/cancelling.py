"""Commands of tasks by callers other than the holder: cancel, requeue, resolve."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from holdfast.core import question as questions
from holdfast.core import task as tasks
from holdfast.core.question import Question
from holdfast.core.task import Task
from holdfast.engine.batches.questions import withdraw_question
from holdfast.engine.expiry import expire_task_if_due, needs_to_end, task_verb
from holdfast.engine.verbs.tasks.base import TaskCommand, TaskOutcome
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class CancelTask(TaskCommand, frozen=True):
    """Cancel a task."""

    mode: Literal["pending", "request", "force"] = "pending"
    """What happens to a held task: refused, its holder asked to stop, or ended at once."""
    reason: str | None = None

    def needs(self) -> Needs:
        """The task, which other commands of the batch might claim."""
        return replace(needs_to_end(self.account, self.task_id), spare=1)

    def decide(self, view: View) -> TaskOutcome:
        """The cancelled task, or the one whose holder is asked to stop."""
        found = self.task(view)
        if found.state == tasks.CANCELLED:
            return TaskOutcome(task=found, now=view.now)
        task = expire_task_if_due(view, found)
        if task.state == tasks.CANCELLED:  # its holder was asked to stop and its lease has expired
            return TaskOutcome(task=task, now=view.now)
        if self.mode == "force":
            after = tasks.force_cancel(task, view.now, self.reason)
        else:
            cancel = tasks.request_cancel if self.mode == "request" else tasks.cancel
            after = cancel(task, self.reason)
        if after != task:
            after = view.put(after, task_verb(after, "cancel_requested"))
            withdraw_question(view, task)
        return TaskOutcome(task=view.effective(after), now=view.now)


class RequeueTask(TaskCommand, frozen=True):
    """Put a dead letter back into its queue; one that waited for an answer asks again."""

    keep_count: bool = False

    def needs(self) -> Needs:
        """The task, and the live task with its unique key."""
        return Needs(rows=((Task.table, self.account, self.task_id),), same_key_as=((self.account, self.task_id),))

    def decide(self, view: View) -> TaskOutcome:
        """The task in its queue, unless another live task has its unique key."""
        task = expire_task_if_due(view, self.task(view))
        after = tasks.requeue(task, view.now, wall=view.wall, keep_count=self.keep_count)
        if task.unique_key is not None:
            tasks.check_key_free(view.live_task_under(self.account, task.unique_key))
        if task.question is not None:
            asked = questions.check_found(view.find(Question, self.account, task.question))
            view.put(questions.ask_again(asked, view.wall), "asked")
        return TaskOutcome(task=view.put(after, "requeued"), now=view.now)


class ResolveTask(TaskCommand, frozen=True):
    """Mark a dead letter as resolved."""

    def decide(self, view: View) -> TaskOutcome:
        """The resolved dead letter."""
        task = self.task(view)
        after = tasks.resolve(task, view.now)
        return TaskOutcome(task=task if after == task else view.put(after, "resolved"), now=view.now)
