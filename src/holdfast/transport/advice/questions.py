"""`agent_contract` of questions."""

from __future__ import annotations

from holdfast.core.question import OPEN, Question
from holdfast.transport.advice.contract import Contract, action, continue_work, contract, work_over


def asked(task_id: str) -> Contract:
    """The caller asked a person about its task, and does not hold it any more."""
    return work_over(
        "The task waits for the answer. Whoever claims it next gets the answer and your checkpoint.",
        action("check_task_status", task_id, why="`waitingFor` is absent once it was answered."),
        action("claim_task", why="Take other work meanwhile."),
    )


def listed(open_id: str | None, cursor: str | None) -> Contract:
    """A page of questions; `open_id` is the first that is open."""
    more = [] if cursor is None else [action("list_questions", query=f"cursor={cursor}", why="There are more.")]
    if open_id is None:
        return continue_work("No question on this page is open.", *more)
    why = "Read it and its task first. Only keys with the scope `answer` may answer."
    return contract(action("read_question", open_id, best=True, why=why), *more)


def read(question: Question) -> Contract:
    """One question."""
    task = action("check_task_status", question.task, why="Read the task that it is about.")
    if question.state != OPEN:
        return continue_work(f"It is {question.state}.", task)
    why = "With one of `choices` if it has any, else with any text. Your key needs the scope `answer`."
    return contract(action("answer_question", question.id, best=True, why=why), task)
