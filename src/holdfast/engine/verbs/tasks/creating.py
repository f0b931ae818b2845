"""Creating tasks, with at most one live task per unique key."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import question as questions
from holdfast.core import task as tasks
from holdfast.core.errors import Invalid
from holdfast.core.plan import Allowance
from holdfast.core.question import Question, QuestionContent, question_id
from holdfast.core.task import Task
from holdfast.engine.batches.questions import withdraw_question
from holdfast.engine.command import Command, Offered
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
    depends_on: tuple[str, ...] = ()
    """Ids, or unique keys of live tasks, of the tasks that must complete first."""
    replace_payload: bool = False
    allowance: Allowance | None = None
    """The limits of the account; None without plans."""
    approval: QuestionContent | None = None
    """What a person must approve before the first claim."""

    def needs(self) -> Needs:
        """The live task with its unique key, the tasks it depends on, and the usage of the account."""
        key, metered = self.task.unique_key, metered_accounts(self.account, self.allowance)
        if key is None and not self.depends_on:
            return Needs(usage=metered)
        named = tuple((self.account, name) for name in self.depends_on)
        return Needs(
            rows=tuple((Task.table, *task) for task in named),
            unique_keys=named if key is None else ((self.account, key), *named),
            spare=int(self.replace_payload),
            usage=metered,
        )

    def size(self) -> int:
        """The size of its payload."""
        return len(self.task.payload)

    def weight(self) -> int:
        """The task, and those that it depends on."""
        return 1 + len(self.depends_on)

    def new_tasks(self) -> tuple[Offered, ...]:
        """The task, unless it waits for others, for an approval or for its time."""
        task = self.task
        if self.depends_on or self.approval is not None or task.scheduled_at is not None:
            return ()
        return ((self.account, task.type, task.requires or ""),)

    def decide(self, view: View) -> Created:
        """The new task, or the existing one."""
        if self.task.unique_key is not None:
            live = view.live_task_under(self.account, self.task.unique_key)
            live = None if live is None else expire_task_if_due(view, live)
            if live is not None and live.state in tasks.LIVE_STATES:
                if self.replace_payload and live.state == tasks.PENDING:
                    live = self.replace_work(view, live)
                return Created(task=view.effective(live), now=view.now, deduplicated=True)
        needed = self.find_needed(view)
        if self.allowance is not None:
            if self.allowance.is_metered:
                self.allowance.check_quota(view.usage(self.account), view.now)
            view.charge(self.account, self.allowance.cycle(view.now))
        task = tasks.create(tasks.depend_on(self.task, needed), view.now, view.wall)
        task = self.put(view, task, "created", self.approval)
        return Created(task=self.link(view, task, needed), now=view.now)

    def find_needed(self, view: View) -> list[Task]:
        """The tasks that it depends on, each once; refuses a name that no task has."""
        found: dict[str, Task] = {}
        for position, name in enumerate(self.depends_on):
            task = view.find(Task, self.account, name) or view.live_task_under(self.account, name)
            if task is None:
                message = f"there is no task with the id, and no live task with the unique key, {name!r}"
                raise Invalid(
                    message, [{"pointer": f"/dependsOn/{position}", "code": "unknown_task", "message": message}]
                )
            found[task.id] = task
        return list(found.values())

    def link(self, view: View, task: Task, needed: list[Task]) -> Task:
        """Mark the tasks that it depends on as awaited; if one of them has failed, that may cancel the new task."""
        for each in needed:
            if not each.awaited:
                view.touch(replace(each, awaited=True))
            view.new_dependents.setdefault((each.account, each.id), []).append(task.id)
        failed = next((each for each in needed if tasks.is_failed(each)), None)
        if failed is None or (after := tasks.after_end_of(task, failed, view.wall)) is task:
            return task
        withdraw_question(view, task)
        return view.put(after, "cancelled")

    def replace_work(self, view: View, live: Task) -> Task:
        """Give a live task this work; what was asked about its former work is withdrawn, an approval asked again."""
        asked = withdraw_question(view, live)
        again = questions.approval_again(asked, tasks.last_answer(live), view.wall)
        return self.put(view, tasks.replace_work(live, self.task, view.wall), "replaced", self.approval or again)

    def put(self, view: View, task: Task, verb: str, approval: QuestionContent | None) -> Task:
        """Save the task, and the question whether it may run."""
        if approval is None:
            return view.put(task, verb)
        row_id = question_id(task.id, task.version + 1)
        blank = Question(self.account, row_id, task=task.id)
        question = questions.ask(blank, approval, task_type=task.type, wall=view.wall)
        waiting = view.put(tasks.await_answer(task, row_id, view.wall), verb)
        view.put(question, "asked")
        return waiting
