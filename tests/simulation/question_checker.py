"""Rules of questions and approvals that no event may break, by the log alone.

A task that waits for an answer, or whose work nobody has approved, is not claimed. A question is answered once: by who
may answer, with one of its choices, before its deadline; or at its deadline with its default answer. The next claim
has that answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.event import Event
from holdfast.engine.verbs.questions import AnswerQuestion
from tests.simulation.supervised_tasks import OPERATOR, PERSON

if TYPE_CHECKING:
    from holdfast.core.task import Task
    from tests.simulation.log_checker import LogChecker
    from tests.simulation.world import World

Image = dict[str, Any]
Given = tuple[str, str, str, int]
"""An answer as the next worker must see it: question, answer, who answered, and the number of the answer."""

MAY_ANSWER = {PERSON.id, OPERATOR.id}
FINAL = {"completed", "dead_letter", "cancelled"}


class QuestionChecker:
    """The open questions, the approvals that are missing, and the answers, by task."""

    def __init__(self, world: World, log: LogChecker) -> None:
        self._world = world
        self._log = log
        self._fail = world.fail
        self._open: dict[str, str] = {}
        """By task: its open question."""
        self._approved: dict[str, bool] = {}
        """By task that needs approval: whether its present work has it."""
        self._given: dict[str, list[Given]] = {}
        """By task: the answers about its present work."""
        self.at_claim: dict[tuple[str, str], Given | None] = {}
        """By request and task that it claimed: the answer that the worker must see."""
        self._touched: dict[str, set[str]] = {}
        """By task: what the present transaction did to it and to its question."""

    def check(self, event: Event, verb: str, before: Image, after: Image) -> None:
        """Check an event of a question."""
        task = before["task"] or after["task"]
        self._touched.setdefault(task, set()).add(f"question {verb}")
        if verb == "asked":
            if task in self._open or before["state"] == "answered":
                self._fail(f"P30: {event.subject} was asked although task:{task} has a question")
            self._open[task] = after["id"]
            if after["kind"] == "approval":
                self._approved[task] = False
        elif verb == "purged":
            if before["state"] == "open":
                self._fail(f"P30: {event.subject} was removed while it was open")
        else:
            if self._open.pop(task, None) != before["id"] or before["state"] != "open":
                self._fail(f"P30: {event.kind} of {event.subject}, which was {before['state']}")
            self._check_end(event, verb, before, after)

    def _check_end(self, event: Event, verb: str, before: Image, after: Image) -> None:
        deadline, request = before["deadline_at"], self._world.requests.get(event.request_id)
        is_due = deadline is not None and deadline <= event.at + self._world.database.wall_step
        if verb == "expired" and not (is_due and before["on_timeout"] is None):
            self._fail(f"P30: {event.subject} expired before its deadline, or in spite of its default answer")
        if verb != "answered":
            return
        if request is None:
            if not is_due or after["answer"] != before["on_timeout"]:
                self._fail(f"P30: {event.subject} was answered by nobody")
            self._world.count("default answer")
        else:
            self._check_answer(event, request, after, is_due=is_due)
        task = after["task"]
        answers = self._given.setdefault(task, [])
        answers.append((after["id"], after["answer"], after["answered_by"], len(answers) + 1))
        if after["kind"] == "approval":
            self._approved[task] = after["answer"] == "approve"
            self._world.count("approved" if self._approved[task] else "rejected")

    def _check_answer(self, event: Event, request: Any, after: Image, *, is_due: bool) -> None:
        command = request.command
        if not isinstance(command, AnswerQuestion) or request.by.id not in MAY_ANSWER:
            self._fail(f"P30: {event.subject} was answered by {request}, whose key may not answer")
        elif is_due:
            self._fail(f"P30: {event.subject} was answered after its deadline")
        elif (after["answer"], after["answered_by"]) != (command.answer, request.by.name):
            self._fail(f"P30: the answer of {request} to {event.subject} is not the stored one")
        elif after["choices"] and after["answer"] not in after["choices"]:
            self._fail(f"P30: {event.subject} was answered with {after['answer']}, which is no choice")

    def check_task(self, event: Event, verb: str, after: Image) -> None:
        """Check an event of a task."""
        task = after["id"]
        self._touched.setdefault(task, set()).add(verb)
        if verb == "replaced":
            self._given.pop(task, None)
            if task in self._approved:
                self._approved[task] = False
        elif verb == "claimed":
            if task in self._open:
                self._fail(f"P30: {event.subject} was claimed while question:{self._open[task]} was open")
            if not self._approved.get(task, True):
                self._fail(f"P30: {event.subject} was claimed, and nobody has approved it")
            given = self._given.get(task)
            self.at_claim[event.request_id, task] = given[-1] if given else None
            if given:
                self._world.count("claim with an answer")

    def committed(self) -> None:
        """After each transaction: a task waits for its question exactly while that is open."""
        for task, verbs in self._touched.items():
            image = self._log.images.get(f"task:{task}", {})
            waits_for = image["question"] if image.get("state") == "pending" else None
            if waits_for != self._open.get(task):
                self._fail(f"P30: task:{task} waits for question:{waits_for}, and open is {self._open.get(task)}")
            is_over = image.get("state", "cancelled") in FINAL or "requeued" in verbs
            if "question withdrawn" in verbs and not is_over and "replaced" not in verbs:
                self._fail(f"P30: the question of task:{task} was withdrawn, and the task goes on")
            if "question expired" in verbs and "dead_lettered" not in verbs:
                self._fail(f"P30: the question of task:{task} expired, and it is no dead letter")
        self._touched = {}

    def check_shown(self, request_id: str, task: Task) -> None:
        """The answer of a claim shows the last answer about the task."""
        shown = None if task.answered is None else msgspec.json.decode(task.answered)
        given = None if shown is None else (shown["id"], shown["answer"], shown["by"], shown["number"])
        if given != self.at_claim.get((request_id, task.id)):
            self._fail(f"P30: the claim of task:{task.id} by {request_id} does not have the last answer, but {given}")
