"""Tasks with people around them: workers ask, people answer and approve, an operator pauses and limits queues.

Some people use a key that may not do that, answer twice, or give an answer that is no choice.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from holdfast.core.principal import MACHINE_SCOPES, Principal
from holdfast.core.question import APPROVAL, APPROVAL_CHOICES, QuestionContent, choices_of
from holdfast.core.row import Instant
from holdfast.core.task.queue import Queue
from holdfast.engine.command import Command
from holdfast.engine.verbs.questions import AnswerQuestion, AskTask
from holdfast.engine.verbs.queues import ChangeQueue, OpenQueue
from holdfast.engine.verbs.tasks.creating import CreateTask
from tests.simulation.clients import BASE, TTL, Client
from tests.simulation.request import Operation
from tests.simulation.task_activities import TYPES, TaskActivity
from tests.support import ACCOUNT

PERSON = Principal(ACCOUNT, "id-person", version=1, name="person", scopes="answer")
OPERATOR = Principal(ACCOUNT, "id-operator", version=1, name="operator", scopes="admin")
MACHINE = Principal(ACCOUNT, "id-machine", version=1, name="machine", scopes=MACHINE_SCOPES)


class SupervisedTaskActivity(TaskActivity):
    """Works on tasks and, in turn, does what people do about them."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._answered: list[str] = []
        self._has_questions = "questions" in client.world.supervision
        self._has_limits = "limits" in client.world.supervision

    def next_operation(self) -> Operation | None:
        chance = self.random.random()
        if self._has_questions and chance < 0.2 and (operation := self._answer_any()) is not None:
            return operation
        if self._has_limits and chance > 0.7:
            return self._set_queue()
        return super().next_operation()

    def create(self) -> CreateTask:
        """A task that may need approval, have a deadline, replace other work, and share its concurrency key."""
        command = super().create()
        if self._has_questions and self.random.random() < 0.3:
            task = replace(command.task, unique_key="k1", max_attempts=3)
            command = replace(command, task=task, replace_payload=True)
        if self.random.random() < 0.15:
            earliest = max(command.task.scheduled_at or 0, self.client.world.database.wall())
            at = earliest + self.random.randint(1, 4 * TTL)
            command = replace(command, task=replace(command.task, deadline_at=at))
        if self._has_limits:
            key = self.random.choice([None, "north", "north", "south"])
            command = replace(command, task=replace(command.task, concurrency_key=key))
        if self._has_questions and self.random.random() < 0.25:
            timeout = self._timeout(self.random.choice([None, *APPROVAL_CHOICES]))
            approval = QuestionContent("May it run?", APPROVAL_CHOICES, *timeout, kind=APPROVAL)
            command = replace(command, approval=approval)
        return command

    def report(self, task_id: str) -> Command[Any]:
        """What a worker reports about a task that it holds: it may ask about it."""
        if not self._has_questions or self.random.random() > 0.35:
            return super().report(task_id)
        content = QuestionContent("Which one?", self.random.choice([(), ("a", "b")]), *self._timeout("a"))
        mine = {"task_id": task_id, "lease_id": self.held[task_id], "once": self.maybe_once(0.2)}
        self.last_report = AskTask(**BASE, **mine, content=content)
        return self.last_report

    def _timeout(self, default: str | None) -> tuple[Instant | None, str | None]:
        """The deadline of a question, by the wall clock, and its answer then; or neither."""
        chance = self.random.random()
        if chance < 0.4:
            return None, None
        at = self.client.world.database.wall() + self.random.randint(1, 2 * TTL)
        return at, default if chance < 0.7 else None

    # -- people ------------------------------------------------------------------------------------------------

    def _answer_any(self) -> Operation | None:
        if self._answered and self.random.random() < 0.2:
            return self._answer(self.random.choice(self._answered), ("a", "b", *APPROVAL_CHOICES))
        opened = self.client.world.open_questions()
        if not opened:
            return None
        question = self.random.choice(opened)
        self._answered.append(question.id)
        return self._answer(question.id, (*3 * choices_of(question), "something else"))

    def _answer(self, question_id: str, texts: tuple[str, ...]) -> Operation:
        by = self.random.choice([PERSON, PERSON, PERSON, OPERATOR, MACHINE, self.client.principal])
        text = self.random.choice(texts)
        command = AnswerQuestion(**BASE, question_id=question_id, answer=text, by=by.name, once=self.maybe_once(0.2))
        return self.operation(command, by=by)

    def _set_queue(self) -> Operation:
        """Open a queue, or change its settings.

        A limit is set when all claims have ended that did not find the row: while clients act, none is under way.
        """
        name = self.random.choice((*TYPES, "cut"))
        by = self.random.choice([OPERATOR, OPERATOR, OPERATOR, OPERATOR, PERSON])
        queue = self.client.world.database.rows.get((Queue.table, ACCOUNT, name))
        if not isinstance(queue, Queue):
            return self.operation(OpenQueue(**BASE, type=name), by=by)
        return self.operation(ChangeQueue(**BASE, type=name, changes=self._settings(queue)), by=by)

    def _settings(self, queue: Queue) -> dict[str, bool | int | None]:
        if queue.paused or self.random.random() < 0.35:
            return {"paused": not queue.paused}
        limits = {"max_running": [None, 1, 2], "max_running_per_key": [None, 1, 1, 2]}
        return {name: self.random.choice(choices) for name, choices in limits.items() if self.random.random() < 0.7}
