"""The verbs that bring tasks to workers: create, claim by type, claim by id."""

from __future__ import annotations

import hashlib
from typing import Self

from msgspec.structs import replace

from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.errors import SessionBusy
from holdfast.core.lease import proof_of
from holdfast.core.plan import Allowance
from holdfast.core.principal import Principal
from holdfast.core.row import Key
from holdfast.core.session import Session
from holdfast.core.task import Claim, Task
from holdfast.engine.command import Command, Outcome, Queue
from holdfast.engine.expiry import expire_task_if_due
from holdfast.engine.steps import with_token
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class TaskOutcome(Outcome, frozen=True):
    """The task as it is now."""

    task: Task

    def with_tokens(self, tokens: list[int]) -> Self:
        """Itself, with the token that was drawn for it."""
        return self if self.task.token >= 0 else replace(self, task=with_token(self.task, tokens))


class Created(TaskOutcome, frozen=True):
    """A new task; or the live one that has its key already."""

    deduplicated: bool = False

    @property
    def binding(self) -> bool:
        """A key that was answered with an existing task must never make a second one."""
        return True


class Taken(TaskOutcome, frozen=True):
    """One task that the caller holds now. Only this answer ever shows the lease id."""

    lease_id: str


class Claimed(Outcome, frozen=True):
    """What the caller holds now, in the order of the queue."""

    taken: tuple[Taken, ...]

    def with_tokens(self, tokens: list[int]) -> Self:
        """Itself, with the tokens that were drawn."""
        return replace(self, taken=tuple(each.with_tokens(tokens) for each in self.taken))


class Empty(Outcome, frozen=True):
    """Nothing to do in these queues just now. For a caller with patience this means: wait."""

    waits = True


class Busy(Outcome, frozen=True):
    """The session is a lane and has a task in flight."""

    task: Task

    @property
    def binding(self) -> bool:
        """It may be free the next time."""
        return False


class CreateTask(Command[Created], frozen=True):
    """Put work into its queue; under a unique key at most one task lives."""

    task: Task
    replace_payload: bool = False
    allowance: Allowance | None = None
    """What the account may do; None for one without plans."""

    def needs(self) -> Needs:
        """Nothing, as its id is new; or whoever lives under its key, and what the account has used."""
        key, metered = self.task.unique_key, metered_by(self)
        if key is None:
            return Needs(usage=metered)
        return Needs(unique_keys=((self.account, key),), spare=int(self.replace_payload), usage=metered)

    def size(self) -> int:
        """Its payload."""
        return len(self.task.payload)

    def decide(self, view: View) -> Created:
        """The new task, or the one that is there already."""
        if self.task.unique_key is not None:
            live = view.live_task_under(self.account, self.task.unique_key)
            live = None if live is None else expire_task_if_due(view, live)
            if live is not None and live.state in tasks.LIVE_STATES:
                if self.replace_payload and live.state == tasks.PENDING:
                    live = view.put(tasks.replace_work(live, self.task, view.now), "replaced")
                return Created(task=live, now=view.now, deduplicated=True)
        if self.allowance is not None:
            if self.allowance.is_metered:
                self.allowance.check_quota(view.usage(self.account), view.now)
            view.charge(self.account, self.allowance.cycle(view.now))
        return Created(task=view.put(tasks.create(self.task, view.now), "created"), now=view.now)


class ClaimCommand(Command[Outcome], frozen=True, kw_only=True):
    """Take work to do."""

    claims = Task.noun
    by: Principal
    worker: str | None
    seed: bytes
    """Chance, from which the lease ids are made."""
    session_id: str | None = None
    session_lease_id: str | None = None
    """The proof of the session's life, from whoever wants its former self fenced."""
    allowance: Allowance | None = None

    def for_caller(self) -> Needs:
        """The session for whose life it is claimed, what it holds, and what the account has used."""
        if self.session_id is None:
            return Needs(usage=metered_by(self))
        return Needs(
            rows=((Session.table, self.account, self.session_id),),
            holdings=((self.account, self.session_id),),
            usage=metered_by(self),
        )

    def most(self, view: View, limit: int) -> int:
        """How many it may take of those it asks for; refuses if the plan allows none."""
        if self.allowance is None or not self.allowance.is_metered:
            return limit
        free = self.allowance.free_workers(view.held_tasks(self.account), view.now)
        return limit if free is None else min(limit, free)

    def in_flight(self, view: View) -> Task | None:
        """The task that keeps a lane busy; the session must be alive."""
        if self.session_id is None:
            return None
        proof = None if self.session_lease_id is None else proof_of(self.session_lease_id)
        found = view.find(Session, self.account, self.session_id)
        session = sessions.check_claimer(found, self.by.id, proof, view.now)
        held = view.tasks_of(self.account, self.session_id) if session.lane else []
        return next((task for task in held if expire_task_if_due(view, task) is task), None)

    def is_lane(self, view: View) -> bool:
        """Whether it may hold one task only."""
        session = view.find(Session, self.account, self.session_id or "")
        return session is not None and session.lane

    def take(self, view: View, task: Task) -> Taken:
        """Hold it."""
        lease_id = lease_id_from(self.seed, task.id)
        claim = Claim(worker=self.worker, principal=self.by.id, session=self.session_id)
        token = view.token()
        taken = view.put(tasks.claim(task, claim, proof=proof_of(lease_id), token=token, now=view.now), "claimed")
        return Taken(task=taken, now=view.now, lease_id=lease_id)


class ClaimTasks(ClaimCommand, frozen=True, kw_only=True):
    """Take the first tasks of some queues; of all if none is named."""

    types: tuple[str, ...] = ()
    limit: int = 1

    def needs(self) -> Needs:
        """The heads of the queues, and the session."""
        return replace(self.for_caller(), ready=tuple((*queue, self.limit) for queue in self.queues()))

    def queues(self) -> tuple[Queue, ...]:
        """Where it may wait."""
        return tuple((self.account, name) for name in self.types or ("",))

    def weight(self) -> int:
        """As many as it may take."""
        return self.limit

    def decide(self, view: View) -> Claimed | Empty | Busy:
        """As many as there are, up to the limit."""
        busy = self.in_flight(view)
        if busy is not None:
            return Busy(task=busy, now=view.now)
        limit = self.most(view, 1 if self.is_lane(view) else self.limit)
        taken: list[Taken] = []
        while len(taken) < limit and (task := view.next_ready(self.account, self.types)) is not None:
            taken.append(self.take(view, task))
        view.came_up_short = view.came_up_short or len(taken) < limit
        return Claimed(taken=tuple(taken), now=view.now) if taken else Empty(now=view.now)


class ClaimTask(ClaimCommand, frozen=True, kw_only=True):
    """Take this one."""

    task_id: str

    def needs(self) -> Needs:
        """The task and the session."""
        wanted: Key = (Task.table, self.account, self.task_id)
        caller = self.for_caller()
        return replace(caller, rows=(*caller.rows, wanted), spare=1)

    def decide(self, view: View) -> Claimed:
        """Held, or refused for good: nobody waits for one certain task."""
        task = expire_task_if_due(view, tasks.check_found(view.find(Task, self.account, self.task_id)))
        tasks.check_claimable(task, view.now)
        busy = self.in_flight(view)
        if busy is not None:
            raise SessionBusy("this session has a task in flight", in_flight=busy.id)
        self.most(view, 1)
        return Claimed(taken=(self.take(view, task),), now=view.now)


def metered_by(command: CreateTask | ClaimCommand) -> tuple[str, ...]:
    """The account, if what it has used must be known."""
    return (command.account,) if command.allowance is not None and command.allowance.is_metered else ()


def lease_id_from(seed: bytes, task_id: str) -> str:
    """A lease id, as random as its seed, in the spelling of a UUID."""
    digits = hashlib.sha256(seed + task_id.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
