"""Commands of questions: asking about a task, answering, and the end at the deadline."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import question as questions
from holdfast.core import task as tasks
from holdfast.core.question import Question, QuestionContent, question_id, task_of
from holdfast.core.task import Task
from holdfast.engine.command import Command, Outcome
from holdfast.engine.expiry import expire_task_if_due, needs_to_end, task_verb
from holdfast.engine.verbs.tasks.base import TaskOutcome
from holdfast.engine.verbs.tasks.holding import HolderCommand
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class QuestionOutcome(Outcome, frozen=True):
    """The question as it is now, and its task."""

    question: Question
    task: Task


class AskTask(HolderCommand, frozen=True):
    """Ask a person about a task: the attempt is over, uncounted, and the task waits for the answer."""

    content: QuestionContent = QuestionContent("")

    def size(self) -> int:
        """The size of its texts."""
        return super().size() + len(self.content.text)

    def decide(self, view: View) -> TaskOutcome:
        """The waiting task; cancelled if its holder was asked to stop."""
        if (repeat := self.find_repeat(view, tasks.ASKED)) is not None:
            return repeat
        held = self.find_held(view)
        row_id = question_id(held.id, held.version + 1)
        waiting = tasks.ask(held, row_id, now=view.now, wall=view.wall)
        outcome = self.end_attempt(view, tasks.ASKED, waiting)
        if waiting.question is not None:
            blank = Question(self.account, row_id, task=held.id)
            asked = questions.ask(
                blank, self.content, task_type=held.type, wall=view.wall, worker=held.worker, attempt=held.attempt
            )
            view.put(asked, "asked")
        return outcome


class QuestionCommand(Command[QuestionOutcome], frozen=True):
    """A command about one question and its task."""

    question_id: str

    def needs(self) -> Needs:
        """The task and the question."""
        return needs_of(self.account, self.question_id)


class AnswerQuestion(QuestionCommand, frozen=True):
    """Answer a question: its task is ready again, or cancelled if it was not approved."""

    answer: str
    by: str
    """The name of the key that answers."""
    reason: str | None = None

    def decide(self, view: View) -> QuestionOutcome:
        """The answered question; the same answer again changes nothing."""
        found = view.find(Task, self.account, task_of(self.question_id))
        question = questions.check_found(view.find(Question, self.account, self.question_id))
        task = tasks.check_found(found)
        if (question.state, question.answer, question.answered_by) == (questions.ANSWERED, self.answer, self.by):
            return QuestionOutcome(question=question, task=task, now=view.now)
        task = expire_task_if_due(view, task)
        question = questions.check_found(view.find(Question, self.account, self.question_id))
        closed = questions.answer(question, self.answer, by=self.by, reason=self.reason, wall=view.wall)
        return QuestionOutcome(
            question=view.put(closed, "answered"), task=apply_answer(view, task, closed), now=view.now
        )


class ExpireQuestion(Command[bool], frozen=True):
    """Close a question at its deadline, with its default answer or without one; does nothing if it is not due."""

    urgent = True
    waits_for_locks = False  # the next pass of the sweep tries again
    question_id: str

    def needs(self) -> Needs:
        """The task and the question."""
        return needs_of(self.account, self.question_id)

    def decide(self, view: View) -> bool:
        """Whether it was due."""
        task = view.find(Task, self.account, task_of(self.question_id))
        if task is not None:
            expire_task_if_due(view, task)
            task = view.find(Task, self.account, task.id)
        question = view.find(Question, self.account, self.question_id)
        if question is None or not questions.is_due(question, view.wall):
            return False
        closed = view.put(questions.expire(question, view.wall), question_verb(question))
        if task is not None:
            apply_answer(view, task, closed)
        return True


def question_verb(question: Question) -> str:
    """The event verb of the end of a question at its deadline."""
    return "expired" if question.on_timeout is None else "answered"


def needs_of(account: str, row_id: str) -> Needs:
    """The rows of a question and of its task, which may end, and the first tasks that depend on that."""
    needs = needs_to_end(account, task_of(row_id))
    return replace(needs, rows=(*needs.rows, (Question.table, account, row_id)), spare=1)


def apply_answer(view: View, task: Task, question: Question) -> Task:
    """The task after the end of the question that it waits for."""
    if task.question != question.id or task.state != tasks.PENDING:
        return task
    if question.answer is None:
        after = tasks.end_unanswered(task)
    elif questions.is_rejected(question):
        after = tasks.reject(task, questions.answered(question))
    else:
        after = tasks.take_answer(task, questions.answered(question), view.wall)
    return view.put(after, task_verb(after, "answered"))
