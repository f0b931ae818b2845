"""What time does by itself: leases and sessions run out, and after an outage holders get some grace."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.lease import EXPIRED, JOB, SESSION_ENDED, Lease
from holdfast.core.row import SECOND, Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.command import Command
from holdfast.engine.view import View
from holdfast.store.needs import Needs

GRACE = 10 * SECOND


def settle(view: View, account: str, name: str) -> Lease:
    """The lease row as it truly is: one that has run out is ended first, swept or not."""
    lease = view.lease(account, name)
    if leases.is_due(lease, view.now):
        return view.put(leases.end(lease, EXPIRED, now=view.now), "expired")
    return lease


def settle_task(view: View, task: Task) -> Task:
    """The task as it truly is, swept or not."""
    settled = tasks.expire_if_due(task, view.now)
    return task if settled is task else view.put(settled, verb_of(settled, "expired"))


def verb_of(task: Task, otherwise: str) -> str:
    """What the log calls a step that may have been a task's last."""
    return {tasks.DEAD: "dead_lettered", tasks.CANCELLED: "cancelled"}.get(task.state, otherwise)


def settle_holdings(view: View, account: str, session_id: str) -> list[Row]:
    """End what has run out of all that a session holds, swept or not."""
    held: list[tuple[Row, Row]] = [
        (lease, settle(view, account, lease.id)) for lease in view.leases_of(account, session_id)
    ]
    held += [(task, settle_task(view, task)) for task in view.tasks_of(account, session_id)]
    return [after for before, after in held if after is not before]


def end_session(view: View, session: Session, how: str) -> tuple[Row, ...]:
    """Close a session and give back what was claimed for its life, each with an event. All that ended."""
    lapsed = settle_holdings(view, session.account, session.id)
    verb = "expired" if how == sessions.EXPIRED else "ended"
    return (
        *lapsed,
        view.put(sessions.end(session, how, view.now), verb),
        *(_freed(view, lease, how) for lease in view.leases_of(session.account, session.id)),
        *(_given_back(view, task, how) for task in view.tasks_of(session.account, session.id)),
    )


def _freed(view: View, lease: Lease, how: str) -> Lease:
    return view.put(leases.end(lease, SESSION_ENDED, now=view.now, reason=f"session {how}"), "released")


def _given_back(view: View, task: Task, how: str) -> Task:
    """A worker that is gone without a word used its attempt; one that ends on purpose hands back."""
    if how == sessions.EXPIRED:
        lapsed = tasks.lapse(task, view.now, reason="session expired")
        return view.put(lapsed, verb_of(lapsed, "expired"))
    back = tasks.hand_back(task, tasks.SESSION_ENDED, now=view.now)
    return view.put(back, verb_of(back, "released"))


class ExpireLease(Command[bool], frozen=True):
    """End a lease whose time has run out; nothing happens if it was renewed meanwhile."""

    urgent = True
    name: str

    def needs(self) -> Needs:
        """The lease."""
        return Needs(rows=((Lease.table, self.account, self.name),))

    def decide(self, view: View) -> bool:
        """Whether it was due."""
        before = view.lease(self.account, self.name)
        return settle(view, self.account, self.name) is not before


class ExpireSession(Command[bool], frozen=True):
    """End a session whose time has run out, and give back what it held."""

    urgent = True
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


class SettleTask(Command[bool], frozen=True):
    """A task's lease has run out, or its scheduled time has come; nothing happens if it moved on meanwhile."""

    urgent = True
    task_id: str

    def needs(self) -> Needs:
        """The task."""
        return Needs(rows=((Task.table, self.account, self.task_id),))

    def decide(self, view: View) -> bool:
        """Whether anything was due."""
        task = view.find(Task, self.account, self.task_id)
        if task is None:
            return False
        if tasks.is_schedule_due(task, view.now):
            view.put(tasks.make_ready(task), "due")
            return True
        return settle_task(view, task) is not task


class GiveGrace(Command[bool], frozen=True):
    """More time for a job, a task or a session whose holder could not renew while the store was away."""

    urgent = True
    key: Key
    seen: Instant
    """When the store was last known to be served."""

    def needs(self) -> Needs:
        """The row."""
        return Needs(rows=(self.key,))

    def decide(self, view: View) -> bool:
        """Whether it was given any."""
        row = view.at(self.key)
        if not isinstance(row, Lease | Task | Session) or not _had_time(row, self.seen):
            return False
        until = view.now + grace(view.now - self.seen, row.lease_duration if isinstance(row, Task) else row.ttl)
        if (row.expires_at or 0) >= until:
            return False
        view.put(replace(row, expires_at=until), "extended")
        return True


def _had_time(row: Lease | Task | Session, seen: Instant) -> bool:
    """It is still held, and its time had not run out when the store was last seen."""
    if isinstance(row, Session):
        return row.name is not None and sessions.is_live(row, seen)
    return (isinstance(row, Task) or row.kind == JOB) and leases.is_live(row, seen)


def grace(outage: Instant, ttl: Instant) -> Instant:
    """How long a holder that could not renew keeps its lease after the store is back."""
    return max(GRACE, min(outage, ttl))
