"""The verbs that tell how a task goes: heartbeat, complete, fail, release, cancel, requeue, resolve."""

from __future__ import annotations

from typing import Literal

from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.errors import Invalid, LeaseExpired, Refused, WrongToken
from holdfast.core.lease import proof_of
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.core.task import Handover, Task
from holdfast.engine.command import Command, Replayed
from holdfast.engine.expiry import expire_task_if_due, task_verb
from holdfast.engine.verbs.tasks.queueing import Claimed, Taken, TaskOutcome
from holdfast.engine.view import View
from holdfast.store.changes import Answer
from holdfast.store.needs import Needs


class TaskCommand(Command[TaskOutcome], frozen=True):
    """A verb about one task."""

    task_id: str

    def needs(self) -> Needs:
        """The task."""
        return Needs(rows=((Task.table, self.account, self.task_id),))

    def task(self, view: View) -> Task:
        """It, or TaskMissing."""
        return tasks.check_found(view.find(Task, self.account, self.task_id))


class HolderCommand(TaskCommand, frozen=True):
    """A write by whoever holds the task."""

    urgent = True
    lease_id: str | None = None
    token: int | None = None
    needs_lease_id: bool = False
    """The account does not take the word of those who show none."""
    left: Handover = Handover()

    def size(self) -> int:
        """What it carries."""
        return len(self.left.checkpoint or "") + len(self.left.note or "")

    @property
    def proof(self) -> str | None:
        """What is kept of the lease id."""
        return None if self.lease_id is None else proof_of(self.lease_id)

    def held(self, view: View) -> Task:
        """The task with what its holder leaves, or a refusal that tells what became of it."""
        if self.lease_id is None and self.needs_lease_id:
            message = "`lease_id` is required in this account: send the one that the claim answered"
            raise Invalid(message, [{"pointer": "/lease_id", "code": "missing", "message": message}])
        task = self.task(view)
        tasks.check_holder(task, self.proof, view.now)
        if self.token is not None and self.token != task.token:
            raise WrongToken(f"the lease is yours, but its token is not {self.token}")
        if task.session is not None:
            session = view.find(Session, self.account, task.session)
            if session is None or not sessions.is_live(session, view.now):
                raise LeaseExpired("the session that held this task is over")
        return tasks.with_handover(task, self.left)

    def ended(self, view: View, outcome: str, after: Task) -> TaskOutcome:
        """Put down how it ended."""
        return TaskOutcome(task=view.put(after, task_verb(after, outcome)), now=view.now)

    def repeated(self, view: View, outcome: str) -> TaskOutcome | None:
        """The same words again, whose first answer was lost: answered, not done, a second time."""
        task = self.task(view)
        return TaskOutcome(task=task, now=view.now) if tasks.is_repeat(task, self.proof, outcome) else None


class HeartbeatTask(HolderCommand, frozen=True):
    """Still at work: start the lease again."""

    def replay(self, view: View, answer: Answer) -> TaskOutcome | Replayed:
        """What was answered before, if the lease still stands; a replay never grants time."""
        self.held(view)
        return super().replay(view, answer)

    def decide(self, view: View) -> TaskOutcome:
        """The task with a full lease."""
        task = tasks.heartbeat(self.held(view), view.now)
        return TaskOutcome(task=view.put(task, "renewed"), now=view.now)


class CompleteTask(HolderCommand, frozen=True):
    """Done."""

    result: str | None = None
    output_id: str | None = None

    def size(self) -> int:
        """What it carries."""
        return super().size() + len(self.result or "")

    def decide(self, view: View) -> TaskOutcome:
        """The finished task; completing it again changes nothing."""
        done = tasks.complete
        return self.repeated(view, tasks.COMPLETED) or self.ended(
            view,
            tasks.COMPLETED,
            done(self.held(view), result=self.result, output_id=self.output_id, now=view.now),
        )


class FailTask(HolderCommand, frozen=True):
    """It went wrong: try again later, or never."""

    reason: str | None = None
    code: str | None = None
    after: Instant | None = None
    permanent: bool = False
    random_fraction: float = 0.0
    """From 0 to 1, for a backoff with jitter."""

    def decide(self, view: View) -> TaskOutcome:
        """Back in its queue, or among the dead letters."""
        if self.lease_id is not None and (again := self.repeated(view, tasks.FAILED)) is not None:
            return again
        failed = tasks.fail(
            self.held(view),
            reason=self.reason,
            code=self.code,
            now=view.now,
            after=self.after,
            permanent=self.permanent,
            random_fraction=self.random_fraction,
        )
        return self.ended(view, tasks.FAILED, failed)


class HandBackTask(HolderCommand, frozen=True):
    """Not my kind of work, or not now: the attempt is not counted."""

    outcome: Literal["released", "snoozed"] = "released"
    after: Instant | None = None

    def decide(self, view: View) -> TaskOutcome:
        """Back in its queue."""
        if self.lease_id is not None and (again := self.repeated(view, self.outcome)) is not None:
            return again
        back = tasks.hand_back(self.held(view), self.outcome, now=view.now, after=self.after)
        return self.ended(view, self.outcome, back)


class UndeliverTask(HolderCommand, frozen=True):
    """Nobody heard that they had it: as if it had not been claimed."""

    def decide(self, view: View) -> TaskOutcome:
        """Back in its queue."""
        back = tasks.undeliver(self.held(view), view.now)
        return self.ended(view, tasks.UNDELIVERED, back)


class ReviewClaim(Command[Claimed], frozen=True):
    """The leases of an earlier claim, as they stand now; nothing is granted."""

    task_ids: tuple[str, ...]
    lease_ids: tuple[str, ...]

    def needs(self) -> Needs:
        """The tasks."""
        return Needs(rows=tuple((Task.table, self.account, task_id) for task_id in self.task_ids))

    def decide(self, view: View) -> Claimed:
        """The tasks whose leases still stand; if none does, what became of the first."""
        taken: list[Taken] = []
        refusals: list[Refused] = []
        for task_id, lease_id in zip(self.task_ids, self.lease_ids, strict=True):
            try:
                task = tasks.check_found(view.find(Task, self.account, task_id))
                tasks.check_holder(task, proof_of(lease_id), view.now)
            except Refused as refusal:
                refusals.append(refusal)
            else:
                taken.append(Taken(task=task, now=view.now, lease_id=lease_id))
        if not taken:
            raise refusals[0]
        return Claimed(taken=tuple(taken), now=view.now)


class CancelTask(TaskCommand, frozen=True):
    """Nobody needs it any more."""

    mode: Literal["pending", "request", "force"] = "pending"
    """Whether one that is held is left alone, asked to stop, or ended."""
    reason: str | None = None

    def needs(self) -> Needs:
        """The task, which may be one that others would claim."""
        return Needs(rows=((Task.table, self.account, self.task_id),), spare=1)

    def decide(self, view: View) -> TaskOutcome:
        """The cancelled task, or the one whose holder is asked to stop."""
        found = self.task(view)
        if found.state == tasks.CANCELLED:
            return TaskOutcome(task=found, now=view.now)
        task = expire_task_if_due(view, found)
        if task.state == tasks.CANCELLED:  # its holder had been asked to stop, and was not heard of
            return TaskOutcome(task=task, now=view.now)
        if self.mode == "force":
            after = tasks.force_cancel(task, view.now, self.reason)
        else:
            give_up = tasks.request_cancel if self.mode == "request" else tasks.cancel
            after = give_up(task, self.reason)
        if after == task:
            return TaskOutcome(task=task, now=view.now)
        return TaskOutcome(task=view.put(after, task_verb(after, "cancel_requested")), now=view.now)


class RequeueTask(TaskCommand, frozen=True):
    """Give a dead letter another life."""

    keep_count: bool = False

    def needs(self) -> Needs:
        """The task, and whoever lives under its unique key by now."""
        return Needs(rows=((Task.table, self.account, self.task_id),), same_key_as=((self.account, self.task_id),))

    def decide(self, view: View) -> TaskOutcome:
        """Back in its queue, unless another task has taken its place."""
        task = expire_task_if_due(view, self.task(view))
        after = tasks.requeue(task, view.now, keep_count=self.keep_count)
        if task.unique_key is not None:
            tasks.check_key_free(view.live_task_under(self.account, task.unique_key))
        return TaskOutcome(task=view.put(after, "requeued"), now=view.now)


class ResolveTask(TaskCommand, frozen=True):
    """A dead letter has been dealt with."""

    def decide(self, view: View) -> TaskOutcome:
        """The same dead letter, which asks for nobody's attention any more."""
        task = self.task(view)
        after = tasks.resolve(task, view.now)
        return TaskOutcome(task=task if after == task else view.put(after, "resolved"), now=view.now)
