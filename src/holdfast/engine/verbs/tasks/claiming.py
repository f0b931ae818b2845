"""Claiming tasks, by type or by id."""

from __future__ import annotations

import hashlib
from typing import Self

from msgspec.structs import replace

from holdfast.core import offer as offers
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.errors import DamagedRow, Refused, SessionBusy
from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.lease import proof_of
from holdfast.core.plan import Allowance
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key
from holdfast.core.session import Session
from holdfast.core.task import Claim, Task
from holdfast.core.task.capabilities import check_capable, combine
from holdfast.engine.command import Command, Outcome, Queue
from holdfast.engine.expiry import expire_task_if_due
from holdfast.engine.session_renewal import ActingSession
from holdfast.engine.verbs.batch import Batch
from holdfast.engine.verbs.tasks.base import TaskOutcome, metered_accounts
from holdfast.engine.verbs.tasks.holding import UndeliverTask
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class GrantedTask(TaskOutcome, frozen=True):
    """One task that the caller holds now. Only this answer contains the lease id."""

    lease_id: str


class Claimed(Outcome, frozen=True):
    """The tasks that the caller holds now, in queue order."""

    taken: tuple[GrantedTask, ...]

    def with_tokens(self, tokens: list[int]) -> Self:
        """The outcome with the tokens drawn for it."""
        return replace(self, taken=tuple(each.with_tokens(tokens) for each in self.taken))


class Empty(Outcome, frozen=True):
    """These queues have no task that the caller may claim. A caller that is willing to wait waits."""

    waits = True
    capabilities: str = ""
    """What the caller can do, and its session."""
    closed: tuple[str, ...] = ()
    """Queues of the account that are paused or full, or with full keys: the caller waits for their places too. Also
    those with tasks whose deadline has passed: until these have ended they may hide others."""


class Busy(Outcome, frozen=True):
    """The session allows one task in flight and has one."""

    task: Task

    @property
    def binding(self) -> bool:
        """A repeated request is decided again: the session may be free by then."""
        return False


class ClaimCommand(Command[Outcome], frozen=True, kw_only=True):
    """A claim of tasks."""

    claims = Task.noun
    by: Principal
    worker: str | None
    seed: bytes
    """Random bytes from which lease ids are derived, without `session_lease_id`."""
    session_id: str | None = None
    session_lease_id: str | None = None
    """The session's lease id: with it, an older generation of the session is refused."""
    allowance: Allowance | None = None
    capabilities: str = ""
    """What the worker can do, beside the capabilities of its session."""
    lease: Instant | None = None
    """How long the lease shall last, if that is longer than the task's own."""

    def acting_session(self) -> ActingSession | None:
        """The session to claim for, if its lease id was sent as well."""
        if self.session_id is None or self.session_lease_id is None:
            return None
        return ActingSession(self.by.id, self.session_id, self.session_lease_id)

    def caller_needs(self) -> Needs:
        """The session that claims, what it holds, and the usage of the account."""
        if self.session_id is None:
            return Needs(usage=metered_accounts(self.account, self.allowance))
        return Needs(
            rows=((Session.table, self.account, self.session_id),),
            holdings=((self.account, self.session_id),),
            usage=metered_accounts(self.account, self.allowance),
        )

    def limit_by_plan(self, view: View, limit: int) -> int:
        """How many of the requested tasks the plan allows; refuses if it allows none."""
        if self.allowance is None or not self.allowance.is_metered:
            return limit
        free = self.allowance.free_workers(view.held_tasks(self.account), view.now)
        return limit if free is None else min(limit, free)

    def in_flight(self, view: View) -> Task | None:
        """The task in flight of a session that allows only one; the session must be live."""
        if self.session_id is None:
            return None
        proof = None if self.session_lease_id is None else proof_of(self.session_lease_id)
        found = view.find(Session, self.account, self.session_id)
        session = sessions.check_claimer(found, self.by.id, proof, view.now)
        held = view.tasks_of(self.account, self.session_id) if session.lane else []
        return next((task for task in held if expire_task_if_due(view, task) is task), None)

    def all_capabilities(self, view: View) -> str:
        """What the worker and its session can do."""
        session = view.find(Session, self.account, self.session_id or "")
        return self.capabilities if session is None else combine(self.capabilities, session.capabilities)

    def allows_one_task(self, view: View) -> bool:
        """Whether the session allows only one task in flight."""
        session = view.find(Session, self.account, self.session_id or "")
        return session is not None and session.lane

    def give_back(self, outcome: Outcome) -> Batch | None:
        """Return the tasks to their queues, unless the caller can repeat its claim with its Idempotency-Key."""
        if not isinstance(outcome, Claimed) or self.once is not None:
            return None
        items = tuple(
            UndeliverTask(account=self.account, cause=self.cause, task_id=claimed.task.id, lease_id=claimed.lease_id)
            for claimed in outcome.taken
        )
        return Batch(account=self.account, cause=self.cause, items=items)

    def take(self, view: View, task: Task) -> GrantedTask:
        """Claim one task."""
        lease_id = lease_id_from(self.seed, task.id)
        claim = Claim(worker=self.worker, principal=self.by.id, session=self.session_id, lease=self.lease)
        taken = tasks.claim(task, claim, proof=proof_of(lease_id), token=view.token(), now=view.now, wall=view.wall)
        if self.session_id is not None and self.session_lease_id is not None:
            lease_id = held_lease_id(self.session_lease_id, taken)
            taken = replace(taken, proof=proof_of(lease_id))
        return GrantedTask(task=view.effective(view.put(taken, "claimed")), now=view.now, lease_id=lease_id)


class ClaimTasks(ClaimCommand, frozen=True, kw_only=True):
    """Claim the first tasks of some queues, or of all queues."""

    types: tuple[str, ...] = ()
    limit: int = 1

    def needs(self) -> Needs:
        """The heads of the queues, and the session."""
        queues = self.queues()
        has_more = bool(self.capabilities or self.session_id)
        requiring = tuple((*queue, self.capabilities, self.session_id or "") for queue in queues) if has_more else ()
        ready = tuple((*queue, self.limit) for queue in queues)
        return replace(self.caller_needs(), ready=ready, requiring=requiring, queues=queues)

    def queues(self) -> tuple[Queue, ...]:
        """The queues that it claims from."""
        return tuple((self.account, name) for name in self.types or ("",))

    def weight(self) -> int:
        """The most tasks it may claim."""
        return self.limit

    def decide(self, view: View) -> Claimed | Empty | Busy:
        """As many as there are, up to the limit."""
        busy = self.in_flight(view)
        if busy is not None:
            return Busy(task=view.effective(busy), now=view.now)
        limit = self.limit_by_plan(view, 1 if self.allows_one_task(view) else self.limit)
        taken: list[GrantedTask] = []
        able = self.all_capabilities(view)
        while len(taken) < limit and (task := view.next_ready(self.account, self.types, able)) is not None:
            taken.append(self.take(view, task))
        view.has_unfilled_claim = view.has_unfilled_claim or len(taken) < limit
        if taken:
            return Claimed(taken=tuple(taken), now=view.now)
        closed = (*view.queues.closed(self.account), *view.queues.with_full_keys(self.account))
        return Empty(capabilities=able, closed=(*closed, *view.ready.overdue_types(self.account)), now=view.now)


class ClaimTask(ClaimCommand, frozen=True, kw_only=True):
    """Claim one task by id."""

    task_id: str
    offer: str | None = None
    """The code of an offer: the caller takes the task over from its holder."""

    def needs(self) -> Needs:
        """The task and the session."""
        key: Key = (Task.table, self.account, self.task_id)
        caller = self.caller_needs()
        return replace(caller, rows=(*caller.rows, key), spare=1, queues_of=((self.account, self.task_id),))

    def decide(self, view: View) -> Claimed:
        """The claimed task, or a refusal: a claim by id never waits."""
        task = expire_task_if_due(view, tasks.check_found(view.find(Task, self.account, self.task_id)))
        if self.offer is None:
            tasks.check_claimable(view.effective(task), view.wall)
        busy = self.in_flight(view)
        if busy is not None:
            raise SessionBusy("this session has a task in flight", in_flight=busy.id)
        check_capable(task, self.all_capabilities(view))
        if self.offer is not None:
            task = self.take_over(view, task, self.offer)
        else:
            view.queues.check_open(task)
            self.limit_by_plan(view, 1)
        return Claimed(taken=(self.take(view, task),), now=view.now)

    def take_over(self, view: View, task: Task, code: str) -> Task:
        """End the giver's attempt, or refuse the code. The number of held tasks stays, so the plan allows it."""
        session = view.find(Session, self.account, self.session_id or "")
        offers.check_code(task, proof_of(code), None if session is None else session.name, view.now)
        tasks.check_time_left(task, view.wall)
        return view.put(tasks.hand_over(task, view.now), tasks.HANDED_OVER)


class ReviewClaim(Command[Claimed], frozen=True):
    """Read the leases of an earlier claim as they are now; nothing is granted."""

    task_ids: tuple[str, ...]
    lease_ids: tuple[str, ...]

    def needs(self) -> Needs:
        """The tasks."""
        return Needs(rows=tuple((Task.table, self.account, task_id) for task_id in self.task_ids))

    def decide(self, view: View) -> Claimed:
        """The tasks that are still held; if none is, the failure of the first: it is refused, or damaged."""
        taken: list[GrantedTask] = []
        failures: list[Refused | DamagedRow] = []
        for task_id, lease_id in zip(self.task_ids, self.lease_ids, strict=True):
            try:
                task = view.effective(tasks.check_found(view.find(Task, self.account, task_id)))
                tasks.check_holder(task, proof_of(lease_id), view.now)
            except (Refused, DamagedRow) as failure:
                failures.append(failure)
            else:
                taken.append(GrantedTask(task=task, now=view.now, lease_id=lease_id))
        if not taken:
            raise failures[0]
        return Claimed(taken=tuple(taken), now=view.now)


def lease_id_from(seed: bytes, task_id: str) -> str:
    """A lease id derived from random bytes, in the form of a UUID."""
    digits = hashlib.sha256(seed + task_id.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
