"""What the model remembers of jobs, tasks, reservations and sessions, and how their leases end by themselves.

The model is written from docs/explanation/promises.md and the API's documentation; it uses nothing of `holdfast`. Where
the moment of a change is not known exactly, a deadline is a range: the lease may expire from `soonest` on, and has
expired at `latest`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.linearizability.history import FOREVER

Key = tuple[str, str]
"""("job" or "task" or "reservation" or "session", its name)"""
Changes = dict[Key, Any]
State = Mapping[Key, Any]

PENDING, CLAIMED, COMPLETED, DEAD = "pending", "claimed", "completed", "dead_letter"


class Moment(NamedTuple):
    """When a call was decided, by the store's clock: not before `soonest`, not after `latest`."""

    soonest: int
    latest: int
    steady: bool = True
    """Whether the store's clock is never set, so that its time does not go back."""

    @property
    def at(self) -> int:
        """Its beginning, for comparison with later moments; 0 if they cannot be compared."""
        return self.soonest if self.steady else 0

    def after(self, at: int) -> Moment:
        """The moment, which is not before `at`: time never goes back for one name."""
        return self if at <= self.soonest else Moment(at, self.latest, self.steady)

    def since(self, at: int) -> Moment:
        """A moment that may have been as early as `at`."""
        return self if at >= self.soonest else Moment(at, self.latest, self.steady)

    @property
    def is_possible(self) -> bool:
        """Whether there is such a moment."""
        return self.soonest <= self.latest


class Job(NamedTuple):
    """A job; it is free while `proof` is None."""

    proof: str | None = None
    owner: str | None = None
    token: int = 0
    """The newest token granted; a lower bound of it if a grant was not answered."""
    ttl: int = 0
    soonest: int = 0
    latest: int = 0
    session: str | None = None
    done: str | None = None
    """The result of the work, if it is done; it stays while somebody does it again."""
    offer: str | None = None
    """The hash of the code of its holder's last offer."""
    open_soonest: int = 0
    open_latest: int = 0
    """When the offer ends."""
    kept: str | None = None
    """The session that it was claimed for, to which it does not belong while it is offered."""
    at: int = 0
    """When it last changed."""


class Task(NamedTuple):
    """A task; it does not exist yet while `state` is empty."""

    state: str = ""
    queue: str = ""
    max_attempts: int = 0
    ttl: int = 0
    attempt: int = 0
    used: int = 0
    """Attempts that count toward `max_attempts`."""
    token: int = 0
    proof: str | None = None
    owner: str | None = None
    soonest: int = 0
    latest: int = 0
    session: str | None = None
    ended: tuple[str, str | None] = ("", None)
    """How the last attempt ended, and the proof of its holder."""
    result: str | None = None
    offer: str | None = None
    open_soonest: int = 0
    open_latest: int = 0
    kept: str | None = None
    at: int = 0


class Reservation(NamedTuple):
    """A reservation; it is held while it has a proof, and has ended if it has none any more."""

    proof: str | None = None
    owner: str | None = None
    token: int = 0
    ttl: int = 0
    soonest: int = 0
    latest: int = 0
    session: str | None = None
    space: str = ""
    paths: tuple[str, ...] = ()
    mode: str = ""
    """Empty before it was reserved."""
    offer: str | None = None
    open_soonest: int = 0
    open_latest: int = 0
    kept: str | None = None
    at: int = 0


class Session(NamedTuple):
    """A session; it was never opened while `generation` is 0."""

    proof: str | None = None
    secret: str | None = None
    token: int = 0
    generation: int = 0
    ttl: int = 0
    soonest: int = 0
    latest: int = 0
    live: bool = False
    at: int = 0


Held = Job | Task | Reservation
BLANK: dict[str, Any] = {"job": Job(), "task": Task(), "reservation": Reservation(), "session": Session()}


def may_live(held: Held | Session, now: Moment) -> bool:
    """Whether its deadline may be still to come."""
    return held.latest > now.soonest


def may_expire(held: Held | Session, now: Moment) -> bool:
    """Whether its deadline may have come: at the deadline itself a lease is over."""
    return held.soonest <= now.latest


def session_may_live(state: State, session: str | None, now: Moment) -> bool:
    """Whether the session that something was claimed for may be live; without a session nothing can end with it."""
    if session is None:
        return True
    found: Session = state["session", session]
    return found.live and may_live(found, now)


def session_may_be_over(state: State, session: str | None, now: Moment) -> bool:
    """Whether the session may be over, so that nothing claimed for it is held any more."""
    if session is None:
        return False
    found: Session = state["session", session]
    return not found.live or may_expire(found, now)


def free(job: Job, now: Moment) -> Job:
    """The job without a holder, not done; its newest token stays."""
    return Job(token=job.token, at=now.at)


def without_holder(held: Held, now: Moment) -> Held:
    """What its lease leaves behind when it expires."""
    if isinstance(held, Task):
        return expire(held, now)
    return free(held, now) if isinstance(held, Job) else end(held, now)


def end(reservation: Reservation, now: Moment) -> Reservation:
    """The reservation after its end."""
    return Reservation(token=reservation.token, mode=reservation.mode, at=now.at)


def expire(task: Task, now: Moment) -> Task:
    """The task after its lease expired: pending again, or a dead letter after its last attempt."""
    after = DEAD if task.used >= task.max_attempts else PENDING
    return _end_attempt(task, "expired", after, now)


def release(task: Task, outcome: str, now: Moment) -> Task:
    """The task in its queue, with the attempt not counted."""
    return _end_attempt(task, outcome, PENDING, now)._replace(used=task.used - 1)


def fail(task: Task, now: Moment) -> Task:
    """The task after a failed attempt."""
    return _end_attempt(task, "failed", DEAD if task.used >= task.max_attempts else PENDING, now)


def complete(task: Task, result: str | None, now: Moment) -> Task:
    """The completed task."""
    return _end_attempt(task, "completed", COMPLETED, now)._replace(result=result)


def _end_attempt(task: Task, outcome: str, after: str, now: Moment) -> Task:
    return task._replace(
        state=after, proof=None, owner=None, soonest=0, latest=0, session=None, ended=(outcome, task.proof),
        offer=None, open_soonest=0, open_latest=0, kept=None, at=now.at,
    )  # fmt: skip


def holdings(state: State, session: str) -> list[Key]:
    """What is held for a session, expired or not."""
    return [
        key for key, each in state.items() if key[0] != "session" and each.proof is not None and each.session == session
    ]


SHORTEST_INTERVAL = 1_000_000 // 3
"""Microseconds: nothing is renewed more often by writes that carry the proof of its session."""


def ways_to_renew(state: State, session: str, now: Moment) -> Iterator[Changes]:
    """What a write for a session renews: the session and what it holds, each if a third of its TTL has passed."""
    ways: list[Changes] = [{}]
    for key in (("session", session), *holdings(state, session)):
        before = state[key]
        left = before.ttl - max(before.ttl // 3, SHORTEST_INTERVAL)
        """It is due from this long before its deadline on."""
        after: list[Any] = []
        if now.soonest < before.latest - left or may_expire(before, now):
            after.append(before)
        if now.latest >= before.soonest - left and may_live(before, now):
            after.append(before._replace(at=now.at, **deadline(now, before.ttl)))
        ways = [way | ({} if each is before else {key: each}) for way in ways for each in after]
    yield from ways


def ways_to_end(state: State, session: str, now: Moment, *, expired: bool) -> Iterator[Changes]:
    """What a session's end changes: itself, and everything held for it, at once.

    A task whose own lease expired first has used an attempt even if the session was closed.
    """
    found: Session = state["session", session]
    if expired:  # perhaps by the sweep of a server, long before the call that shows it
        now = now.since(found.soonest)
    ways: list[Changes] = [{("session", session): found._replace(live=False, at=now.at)}]
    for key in holdings(state, session):
        held = state[key]
        after: list[Any]
        if not isinstance(held, Task):
            after = [without_holder(held, now)]
        else:
            after = [expire(held, now)] if expired or may_expire(held, now) else []
            if not expired and may_live(held, now):
                after.append(release(held, "session_ended", now))
        ways = [way | {key: each} for way in ways for each in after]
    yield from ways


def ways_to_be_free(state: State, key: Key, now: Moment) -> Iterator[Changes]:
    """How a job, a task or a reservation can have lost its holder by now without a call: none if it has no holder."""
    held = state[key]
    if held.proof is None:
        yield {}
        return
    if may_expire(held, now):
        yield {key: without_holder(held, now)}
    if held.session is not None:
        session: Session = state["session", held.session]
        if session.live and may_expire(session, now):
            yield from ways_to_end(state, held.session, now, expired=True)


def deadline(now: Moment, ttl: int) -> dict[str, int]:
    """The deadline of a lease that begins now."""
    return {"soonest": now.soonest + ttl, "latest": min(now.latest + ttl, FOREVER)}


def fits(expires_at: int | None, held: Held | Session, session: Session | None) -> bool:
    """Whether an answer may show this deadline: the lease's own, or its session's if that is earlier."""
    if expires_at is None:
        return True
    if session is None:
        return held.soonest <= expires_at <= held.latest
    return min(held.soonest, session.soonest) <= expires_at <= min(held.latest, session.latest)
