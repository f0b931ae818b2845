"""Moves deadlines when the clock of a store is set, so that each holder keeps the time that it has left.

`set_clock_right` is for a clock that a boot with a wrong wall clock has put ahead: times that were set by it move back
with it, and a task keeps its position in the queue. Schedules follow the wall clock, so they stay.

`step_commands` is for a clock that was set while servers run, which can happen on PostgreSQL. A lane runs the commands
before anything else, so that nothing expires by the changed clock.
"""

from __future__ import annotations

import logging
from typing import Any

from msgspec.structs import replace

from holdfast.core import offer as offers
from holdfast.core.deadlines import after_clock_step, ttl_of
from holdfast.core.event import Cause
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND, Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import LIVE_STATES, Task
from holdfast.engine.command import Command
from holdfast.engine.expiry import GiveGrace, was_live, with_limit_after_clock_step
from holdfast.engine.view import View
from holdfast.store.contract import Reader, Store
from holdfast.store.needs import AllNeeds, Needs

log = logging.getLogger("holdfast.engine")

PAGE = 1_000
MIN_AHEAD = 60 * SECOND
"""A store's clock that is less far ahead approaches the wall clock by itself."""
GRACE_STEP = 2 * SECOND
"""After a larger step forward holders get grace, as after an outage."""
_STEP = Cause("clock", "")
_VERBS: dict[type[Row], str] = {
    Lease: "extended",
    Reservation: "extended",
    Session: "extended",
    Task: "extended",
    Principal: "changed",
}
"""The kinds of rows with times of their own, and the event that records the move."""


def set_clock_right(store: Store) -> tuple[Instant, int]:
    """Set a clock that is ahead back to the wall clock, with all deadlines; (by how much, how many rows moved).

    Everything happens in one transaction. A server may run meanwhile: it reads the clock in every transaction.
    """
    with store.transaction() as transaction, store.read() as reader:
        ahead, wall = reader.now - reader.wall, reader.wall
        if ahead < MIN_AHEAD:
            return 0, 0
        keys = [key for row_type in _VERBS for key in _keys_to_move(reader, row_type, ahead, wall)]
        transaction.set_clock(wall)
        view = View(transaction.load(AllNeeds.of([Needs(rows=tuple(keys))])))
        view.cause = Cause("doctor", "")
        moved = 0
        for key in keys:
            row = view.at(key)
            after = None if row is None else move_back(row, ahead, wall)
            if row is not None and after is not None and after != row:
                view.put(after, _VERBS[type(row)])
                moved += 1
        view.keep()
        transaction.save(view.changes([]))
    return ahead, moved


def _keys_to_move(reader: Reader, row_type: type[Row], ahead: Instant, wall: Instant) -> list[Key]:
    keys: list[Key] = []
    after = ("", "")
    while rows := reader.rows_after(row_type, *after, PAGE):
        keys += [row.key for row in rows if move_back(row, ahead, wall) != row]
        after = rows[-1].key[1:]
    return keys


def move_back(row: Row, ahead: Instant, wall: Instant) -> Row:
    """The row for a clock that is set back by `ahead` to `wall`; the same row if nothing in it changes."""

    def moved(at: Instant | None) -> Instant | None:
        return at - ahead if at is not None and at > wall else at

    if isinstance(row, Lease | Task | Reservation):
        row = offers.with_end(row, lambda offer: moved(offer.until) or 0)
    if isinstance(row, Lease):
        return replace(row, expires_at=moved(row.expires_at), available_at=moved(row.available_at))
    if isinstance(row, Reservation):
        return replace(row, expires_at=moved(row.expires_at), waits_until=moved(row.waits_until))
    if isinstance(row, Session) and row.ended_at is None:
        return replace(row, expires_at=row.expires_at if row.expires_at <= wall else row.expires_at - ahead)
    if isinstance(row, Task) and row.state in LIVE_STATES:
        row = replace(row, expires_at=moved(row.expires_at), run_until=moved(row.run_until))
        if row.created_at > wall:
            row = replace(row, created_at=row.created_at - ahead)
            row = replace(row, place=row.place - ahead if row.scheduled_at is None else row.place)
        return row
    if isinstance(row, Principal):
        row = replace(row, old_until=moved(row.old_until))
        return replace(row, expires_at=moved(row.expires_at)) if row.created_at > wall else row
    return row


class MoveDeadline(Command[bool], frozen=True):
    """Move the deadline of a job, a reservation, a task or a session after a step of the clock."""

    urgent = True
    key: Key
    step: Instant
    """By how much the clock was set forward; negative if it was set back."""

    def needs(self) -> Needs:
        """The row."""
        return Needs(rows=(self.key,))

    def decide(self, view: View) -> bool:
        """Whether its deadline was moved."""
        row = view.at(self.key)
        if not isinstance(row, Lease | Task | Session | Reservation) or not was_live(row, view.now - max(self.step, 0)):
            return False
        assert row.expires_at is not None
        after = self._moved(row, row.expires_at, view.now)
        if after == row:
            return False
        view.put(after, "extended")
        return True

    def _moved(self, row: Lease | Task | Session | Reservation, expires_at: Instant, now: Instant) -> Row:
        """The row with its deadline moved, and the end of its offer."""
        if isinstance(row, Session):
            return replace(row, expires_at=after_clock_step(expires_at, row.ttl, self.step, now))
        if isinstance(row, Task):
            row = with_limit_after_clock_step(row, self.step, now)
        ttl = offers.longest(row, ttl_of(row))
        moved = replace(row, expires_at=after_clock_step(expires_at, ttl, self.step, now))
        return offers.with_end(moved, lambda offer: after_clock_step(offer.until, offer.lasts, self.step, now))


def step_commands(store: Store, step: Instant) -> list[Command[Any]]:
    """The commands that adjust the deadlines of all holders after a step of the database's clock.

    Another server may be about to commit a claim whose deadline it has computed by the clock before the step. Its row
    cannot be read yet, and would expire at once by the changed clock: so the holders are read when its batch has ended.
    """
    store.await_open_batches()
    with store.read() as reader:
        before_step = reader.now - max(step, 0)
        keys = reader.held_at(before_step)
    log.warning("the database's clock was set by %+.1f s: deadlines of %d holders follow", step / SECOND, len(keys))
    if step > GRACE_STEP:
        return [GiveGrace(account=key[1], cause=_STEP, key=key, last_beat=before_step, clock_step=step) for key in keys]
    return [MoveDeadline(account=key[1], cause=_STEP, key=key, step=step) for key in keys]
