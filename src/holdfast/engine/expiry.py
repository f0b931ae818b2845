"""Expiry of leases, reservations, tasks and sessions, and the grace that holders get after an outage."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import offer as offers
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.deadlines import after_clock_step, ttl_of
from holdfast.core.lease import EXPIRED, JOB, SESSION_ENDED, Lease
from holdfast.core.reservation import lifecycle
from holdfast.core.reservation import row as reservations
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND, Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.batches.dependencies import update_next_dependents
from holdfast.engine.batches.questions import withdraw_question
from holdfast.engine.command import Command
from holdfast.engine.outages import OUTAGE_SECONDS
from holdfast.engine.view import View
from holdfast.store.needs import Needs

MIN_GRACE = 10 * SECOND


def expire_lease_if_due(view: View, account: str, name: str) -> Lease:
    """The lease. If it has expired it is ended first: the sweep may not have ended it yet."""
    lease = view.lease(account, name)
    if leases.is_due(lease, view.now):
        return view.put(leases.end(lease, EXPIRED, now=view.now), "expired")
    return lease


def expire_task_if_due(view: View, task: Task) -> Task:
    """The task. What is due is ended first: its expired lease, or the task if its deadline has passed."""
    settled = tasks.expire_if_due(task, view.now, view.wall)
    if settled is task:
        return task
    after = view.put(settled, task_verb(settled, "expired"))
    withdraw_question(view, task)
    return after


def expire_reservation_if_due(view: View, row: Reservation) -> Reservation:
    """The reservation. If it has expired, or its wait was not renewed, it is ended first."""
    if not reservations.is_due(row, view.now):
        return row
    return view.put(lifecycle.end(row, EXPIRED, now=view.now), EXPIRED if row.proof else reservations.LEFT)


def task_verb(task: Task, otherwise: str) -> str:
    """The event verb of a step: of a final state if the task has reached one, else `otherwise`."""
    return {tasks.DEAD: "dead_lettered", tasks.CANCELLED: "cancelled"}.get(task.state, otherwise)


def needs_to_end(account: str, task_id: str) -> Needs:
    """What a command needs that may end a task: the task, and the first ones that depend on it."""
    return Needs(rows=((Task.table, account, task_id),), dependents=((account, task_id),))


def expire_holdings(view: View, account: str, session_id: str) -> list[Row]:
    """End what a session holds and what has expired; returns the rows that ended."""
    held: list[tuple[Row, Row]] = [
        (lease, expire_lease_if_due(view, account, lease.id)) for lease in view.leases_of(account, session_id)
    ]
    held += [(task, expire_task_if_due(view, task)) for task in view.tasks_of(account, session_id)]
    held += [(row, expire_reservation_if_due(view, row)) for row in view.reservations_of(account, session_id)]
    return [after for before, after in held if after is not before]


def end_session(view: View, session: Session, how: str) -> tuple[Row, ...]:
    """Close a session and free what it holds, each with an event; returns every row that ended."""
    expired = expire_holdings(view, session.account, session.id)
    verb = "expired" if how == sessions.EXPIRED else "ended"
    return (
        *expired,
        view.put(sessions.end(session, how, view.now), verb),
        *(_free_lease(view, lease, how) for lease in view.leases_of(session.account, session.id)),
        *(_free_task(view, task, how) for task in view.tasks_of(session.account, session.id)),
        *(_free_reservation(view, row, how) for row in view.reservations_of(session.account, session.id)),
    )


def _free_lease(view: View, lease: Lease, how: str) -> Lease:
    return view.put(leases.end(lease, SESSION_ENDED, now=view.now, reason=f"session {how}"), "released")


def _free_reservation(view: View, row: Reservation, how: str) -> Reservation:
    return view.put(lifecycle.end(row, SESSION_ENDED, now=view.now, reason=f"session {how}"), "released")


def _free_task(view: View, task: Task, how: str) -> Task:
    """End the task's attempt. It counts if the session expired, and does not if it was closed."""
    if how == sessions.EXPIRED:
        expired = tasks.expire(task, view.now, wall=view.wall, reason="session expired")
        return view.put(expired, task_verb(expired, "expired"))
    back = tasks.release(task, tasks.SESSION_ENDED, now=view.now)
    return view.put(back, task_verb(back, "released"))


class ExpireLease(Command[bool], frozen=True):
    """End an expired lease; does nothing if it was renewed meanwhile."""

    urgent = True
    waits_for_locks = False  # the next pass of the sweep tries again
    name: str

    def needs(self) -> Needs:
        """The lease."""
        return Needs(rows=((Lease.table, self.account, self.name),))

    def decide(self, view: View) -> bool:
        """Whether it was due."""
        before = view.lease(self.account, self.name)
        return expire_lease_if_due(view, self.account, self.name) is not before


class ExpireReservation(Command[bool], frozen=True):
    """End an expired reservation, or a wait that was not renewed; does nothing if it was renewed meanwhile."""

    urgent = True
    waits_for_locks = False  # the next pass of the sweep tries again
    reservation_id: str

    def needs(self) -> Needs:
        """The reservation."""
        return Needs(rows=((Reservation.table, self.account, self.reservation_id),))

    def decide(self, view: View) -> bool:
        """Whether it was due."""
        row = view.find(Reservation, self.account, self.reservation_id)
        return row is not None and expire_reservation_if_due(view, row) is not row


class ExpireSession(Command[bool], frozen=True):
    """End an expired session and free what it held."""

    urgent = True
    waits_for_locks = False  # the next pass of the sweep tries again
    session_id: str

    def needs(self) -> Needs:
        """The session and what it holds."""
        return Needs(
            rows=((Session.table, self.account, self.session_id),),
            holdings=((self.account, self.session_id),),
        )

    def decide(self, view: View) -> bool:
        """Whether it was due."""
        session = view.find(Session, self.account, self.session_id)
        if session is None or not sessions.is_due(session, view.now):
            return False
        return bool(end_session(view, session, sessions.EXPIRED))


class UpdateDueTask(Command[bool], frozen=True):
    """End a task's expired lease or a task whose time is over, or enqueue a scheduled task that is due.

    Or let more dependents learn that it has ended. Does nothing if it changed meanwhile.
    """

    urgent = True
    waits_for_locks = False  # the next pass of the sweep tries again
    task_id: str

    def needs(self) -> Needs:
        """The task, and those that depend on it."""
        return needs_to_end(self.account, self.task_id)

    def decide(self, view: View) -> bool:
        """Whether anything was due."""
        task = view.find(Task, self.account, self.task_id)
        if task is None:
            return False
        if task.releasing is not None:
            return update_next_dependents(view, task)
        if tasks.is_schedule_due(task, view.wall) and not tasks.is_over(task, view.wall):
            view.put(tasks.make_ready(task), "due")
            return True
        return expire_task_if_due(view, task) is not task


class GiveGrace(Command[bool], frozen=True):
    """Extend a job, a reservation, a task or a session whose holder could not renew during an outage."""

    urgent = True
    key: Key
    last_beat: Instant
    """When a server last ran."""
    unless_changed_since: bool = False
    """Whether to skip a row that was changed when no server ran any more: its holder reached the store without one.

    A server may have run for a while after its last heartbeat, so a row that changed then is not skipped.
    """
    clock_step: Instant = 0
    """By how much the store's clock was set forward: the limit of an attempt follows; after an outage it does not."""

    def needs(self) -> Needs:
        """The row."""
        return Needs(rows=(self.key,))

    def decide(self, view: View) -> bool:
        """Whether its deadline was moved."""
        row = view.at(self.key)
        if not isinstance(row, Lease | Task | Session | Reservation) or not was_live(row, self.last_beat):
            return False
        if self.unless_changed_since and row.changed_at > self.last_beat + OUTAGE_SECONDS * SECOND:
            return False
        after: Row = row
        if isinstance(row, Task) and self.clock_step:
            after = row = with_limit_after_clock_step(row, self.clock_step, view.now)
        until = view.now + grace(view.now - self.last_beat, ttl_of(row))
        if (row.expires_at or 0) < until:
            after = _with_grace(row, until, self.last_beat)
        if after == view.at(self.key):
            return False
        view.put(after, "extended")
        return True


def with_limit_after_clock_step(task: Task, step: Instant, now: Instant) -> Task:
    """The task with the limit of its attempt after the store's clock was set forward, or back if `step` is negative."""
    if task.run_until is None or task.max_run is None:
        return task
    until = after_clock_step(task.run_until, task.max_run, step, now)
    return replace(task, run_until=tasks.limit_after_clock_step(task, until))


def _with_grace(row: Lease | Task | Session | Reservation, until: Instant, last_beat: Instant) -> Row:
    """The row with a later deadline; an offer that could not be accepted during the outage stays open as long."""
    extended = replace(row, expires_at=until)
    if isinstance(extended, Session):
        return extended
    return offers.with_end(extended, lambda offer: max(offer.until, until) if offer.until > last_beat else offer.until)


def was_live(row: Lease | Task | Session | Reservation, last_beat: Instant) -> bool:
    """Whether it is still held and had not expired when a server last ran."""
    if isinstance(row, Session):
        return row.name is not None and sessions.is_live(row, last_beat)
    return (not isinstance(row, Lease) or row.kind == JOB) and leases.is_live(row, last_beat)


def grace(outage: Instant, ttl: Instant) -> Instant:
    """How long a holder that could not renew keeps its lease after the outage."""
    return max(MIN_GRACE, min(outage, ttl))
