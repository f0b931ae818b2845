"""Withdraws the open question of a task that ends or gets other work."""

from __future__ import annotations

from holdfast.core import question as questions
from holdfast.core.question import Question
from holdfast.core.task import Task
from holdfast.engine.view import View


def withdraw_question(view: View, task: Task) -> Question | None:
    """Close the open question of a task that ends or gets other work; returns the question as it was."""
    question = None if task.question is None else view.find(Question, task.account, task.question)
    if question is None or question.state != questions.OPEN:
        return None
    view.put(questions.withdraw(question), "withdrawn")
    return question
