"""Commands of the holder of a task: heartbeat, complete, fail, release."""

from __future__ import annotations

from typing import Literal

from holdfast.core import offer as offers
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.errors import Invalid, LeaseExpired, WrongToken
from holdfast.core.lease import proof_of
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.core.task import Handover, Task
from holdfast.core.task.retry import Backoff
from holdfast.engine.command import Replayed
from holdfast.engine.expiry import needs_to_end, task_verb
from holdfast.engine.session_renewal import ActingSession
from holdfast.engine.verbs.tasks.base import TaskCommand, TaskOutcome
from holdfast.engine.view import View
from holdfast.store.changes import Answer
from holdfast.store.needs import Needs


class HolderCommand(TaskCommand, frozen=True):
    """A write by the holder of a task."""

    urgent = True
    lease_id: str | None = None
    token: int | None = None
    worker: str | None = None
    """The caller's name: without a lease id, it must be that of the worker that claimed the task."""
    needs_lease_id: bool = False
    """Whether the account requires a lease id."""
    handover: Handover = Handover()
    session: ActingSession | None = None
    """The session that it is sent for."""

    def acting_session(self) -> ActingSession | None:
        """The session that it is sent for."""
        return self.session

    def size(self) -> int:
        """The size of its texts."""
        return len(self.handover.checkpoint or "") + len(self.handover.note or "")

    @property
    def proof(self) -> str | None:
        """SHA-256 of the lease id."""
        return None if self.lease_id is None else proof_of(self.lease_id)

    def find_held(self, view: View) -> Task:
        """The task with the holder's newest notes; refuses a caller that does not hold it, with the reason."""
        self.check_proof()
        task = self.stored(view)
        tasks.check_holder(view.effective(task), self.proof, view.now, worker=self.worker)
        if self.token is not None and self.token != task.token:
            raise WrongToken(f"the lease is yours, but its token is not {self.token}")
        if task.session is not None:
            session = view.find(Session, self.account, task.session)
            if session is None or not sessions.is_live(session, view.now):
                raise LeaseExpired("the session that held this task is over")
        return tasks.with_handover(task, self.handover)

    def stored(self, view: View) -> Task:
        """The task; after the end of its offer it belongs to its session again."""
        return offers.without_past_offer(self.task(view), view.now)

    def check_proof(self) -> None:
        """Refuse a caller without a lease id where the account requires one."""
        if self.lease_id is None and self.needs_lease_id:
            message = "`lease_id` is required in this account: send the one that the claim returned"
            raise Invalid(message, [{"pointer": "/lease_id", "code": "missing", "message": message}])

    def end_attempt(self, view: View, outcome: str, after: Task) -> TaskOutcome:
        """Record how the attempt ended."""
        return TaskOutcome(task=view.put(after, task_verb(after, outcome)), now=view.now)

    def find_repeat(self, view: View, outcome: str) -> TaskOutcome | None:
        """The answer to a repeated report whose first answer was lost, or None if it is not repeated."""
        self.check_proof()
        task = self.task(view)
        if task.state == tasks.CLAIMED:  # as `is_repeat` says; this saves hashing the lease id twice
            return None
        if not tasks.is_repeat(task, self.proof, outcome, worker=self.worker):
            return None
        return TaskOutcome(task=task, now=view.now)


class HeartbeatTask(HolderCommand, frozen=True):
    """Renew the lease."""

    @property
    def stores_answer(self) -> bool:
        """Only if it has a note, checkpoint or progress.

        Repeating a plain renewal is harmless, and renewals are frequent.
        """
        return self.handover != Handover()

    def replay(self, view: View, answer: Answer) -> TaskOutcome | Replayed:
        """The first answer, if the task is still held; a replay never extends the lease."""
        self.find_held(view)
        return super().replay(view, answer)

    def decide(self, view: View) -> TaskOutcome:
        """The task with its new deadline."""
        task = tasks.heartbeat(self.find_held(view), view.now)
        return TaskOutcome(task=view.effective(view.put(task, "renewed")), now=view.now)


class CompleteTask(HolderCommand, frozen=True):
    """Complete the task."""

    result: str | None = None
    output_id: str | None = None

    def needs(self) -> Needs:
        """The task, and those that depend on it."""
        return needs_to_end(self.account, self.task_id)

    def size(self) -> int:
        """The size of its texts."""
        return super().size() + len(self.result or "")

    def decide(self, view: View) -> TaskOutcome:
        """The finished task; completing it again with the same result changes nothing."""
        repeat = self.find_repeat(view, tasks.COMPLETED)
        if repeat is not None:
            tasks.check_same_result(repeat.task, result=self.result, output_id=self.output_id)
            return repeat
        held = self.find_held(view)
        completed = tasks.complete(held, result=self.result, output_id=self.output_id, now=view.now)
        return self.end_attempt(view, tasks.COMPLETED, completed)


class FailTask(HolderCommand, frozen=True):
    """Report a failure: the task is retried later, or becomes a dead letter."""

    reason: str | None = None
    code: str | None = None
    after: Instant | None = None
    permanent: bool = False
    random_fraction: float = 0.0
    """From 0 to 1, for a backoff with jitter."""
    default_backoff: Backoff | None = None
    """The backoff of tasks that have none. Clients that know no lease ids expect such a task back at once."""

    def needs(self) -> Needs:
        """The task, and those that depend on it: this may be its last attempt."""
        return needs_to_end(self.account, self.task_id)

    def decide(self, view: View) -> TaskOutcome:
        """The task in its queue, or as a dead letter."""
        if (repeat := self.find_repeat(view, tasks.FAILED)) is not None:
            tasks.check_same_failure(repeat.task, reason=self.reason, code=self.code)
            return repeat
        failed = tasks.fail(
            self.find_held(view),
            reason=self.reason,
            code=self.code,
            now=view.now,
            wall=view.wall,
            after=self.after,
            permanent=self.permanent,
            random_fraction=self.random_fraction,
            default=None if self.lease_id is None else self.default_backoff,
        )
        return self.end_attempt(view, tasks.FAILED, failed)


class ReleaseTask(HolderCommand, frozen=True):
    """Release or snooze the task; the attempt is not counted."""

    outcome: Literal["released", "snoozed"] = "released"
    after: Instant | None = None

    def decide(self, view: View) -> TaskOutcome:
        """The task in its queue."""
        if (repeat := self.find_repeat(view, self.outcome)) is not None:
            return repeat
        back = tasks.release(self.find_held(view), self.outcome, now=view.now, wall=view.wall, after=self.after)
        return self.end_attempt(view, self.outcome, back)


class UndeliverTask(HolderCommand, frozen=True):
    """Undo a claim whose answer never reached the worker."""

    def decide(self, view: View) -> TaskOutcome:
        """The task in its queue."""
        back = tasks.undeliver(self.find_held(view), view.now)
        return self.end_attempt(view, tasks.UNDELIVERED, back)
