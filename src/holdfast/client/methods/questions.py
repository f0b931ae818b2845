"""Questions to people: ask, read and answer them."""

from __future__ import annotations

from typing import Any

from holdfast.client.methods.base import Caller, R


class QuestionMethods(Caller[R]):
    """Questions to people: ask, read and answer them."""

    def ask_task(
        self,
        task_id: str,
        question: str,
        *,
        choices: list[str] | None = None,
        deadline: str | None = None,
        on_timeout: str | None = None,
        lease_id: str | None = None,
        fencing_token: int | None = None,
        worker_id: str | None = None,
        note: str | None = None,
        checkpoint: Any = None,
        progress: Any = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Ask a person about a task, which waits for the answer; the caller holds it no longer.

        `choices` are the possible answers, else any text is one. Without an answer at the `deadline` it is
        `on_timeout`, or the task becomes a dead letter.
        """
        return self.call(
            "ask_task",
            id=task_id,
            question=question,
            choices=choices,
            answer_by=deadline,
            on_timeout=on_timeout,
            lease_id=lease_id,
            fencing_token=fencing_token,
            worker_id=worker_id,
            note=note,
            checkpoint=checkpoint,
            progress=progress,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def list_questions(self, *, limit: int | None = None, cursor: str | None = None) -> R:
        """List the questions to people, open ones first."""
        return self.call("list_questions", limit=limit, cursor=cursor)

    def read_question(self, question_id: str) -> R:
        """Read a question and its answer."""
        return self.call("read_question", id=question_id)

    def answer_question(self, question_id: str, answer: str, *, reason: str | None = None) -> R:
        """Answer a question, or approve a task; this needs a key with the scope `answer`."""
        return self.call("answer_question", id=question_id, answer=answer, reason=reason)
