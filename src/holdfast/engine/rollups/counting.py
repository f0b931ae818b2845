"""Counting a part of one account's log into roll-ups."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.core.event import Event
from holdfast.core.page import PAGE_BYTES
from holdfast.core.rollups.event_counts import (
    TaskPast,
    by_resolution,
    count_events,
    is_past_known,
    past_of,
    sample,
    unknown_tasks,
)
from holdfast.core.rollups.intervals import RESOLUTIONS
from holdfast.core.rollups.rollup import Rollup, merge
from holdfast.core.row import Instant
from holdfast.store.contract import Store
from holdfast.store.contract.rollups import CountedEvents, UncountedLog

PAGE = 1_000
EARLIER_EVENTS = 20
"""Events of one task that are read to find when it was queued or claimed, if the last one does not tell."""
IDLE_FACTOR = 15
"""After a page the thread waits for this many times its duration, so that a busy log costs the server little."""
MAX_IDLE_SECONDS = 0.5
FAR_BEHIND = 100_000
"""With so many events left to count, the thread waits as long as a page takes, or it would never catch up."""

Pause = Callable[[float], bool]
"""Waits for so many seconds; returns whether to stop."""


def count_log(store: Store, uncounted: UncountedLog, limit: int, pause: Pause) -> tuple[CountedEvents, bool]:
    """Count at most about `limit` events of an account; returns what was counted, and whether to stop."""
    account, last = uncounted.account, uncounted.last
    start = seq = max(uncounted.cursor or 0, uncounted.floor)
    pasts: dict[str, TaskPast] = {}
    minutes: dict[Instant, Rollup] = {}
    now = counted_to = 0
    is_stopped = False
    while seq < last and seq - start < limit and not is_stopped:
        began = time.monotonic()
        with store.read() as reader:
            now, events = reader.now, reader.events(account, seq, PAGE, PAGE_BYTES)
        _look_up(store, account, events, pasts)
        count_events(events, pasts, minutes)
        seq, counted_to = (events[-1].seq, events[-1].at) if events else (last, now)
        if len(events) == PAGE:
            is_stopped = pause(idle_seconds(time.monotonic() - began, last - seq))
    if seq >= last:
        now, moment = _sample(store, account)
        counted_to, minute = now, RESOLUTIONS[0].start_of(now)
        minutes[minute] = merge(minutes.get(minute, Rollup()), moment)
    rollups = by_resolution(minutes, now)
    return CountedEvents(account, uncounted.cursor, seq, counted_to, rollups), is_stopped


def idle_seconds(spent: float, left: int) -> float:
    """How long to wait after a page that took `spent` seconds, with so many events left."""
    return min(spent * (1 if left >= FAR_BEHIND else IDLE_FACTOR), MAX_IDLE_SECONDS)


def _sample(store: Store, account: str) -> tuple[Instant, Rollup]:
    """The numbers of this moment, and the time."""
    delayed = store.rollups.delayed_tasks(account)
    with store.read() as reader:
        held, counts, now = reader.held_counts(account), reader.task_counts(account), reader.now
    return now, sample(counts, delayed, (held.leases, held.reservations, held.tasks))


def _look_up(store: Store, account: str, events: list[Event], pasts: dict[str, TaskPast]) -> None:
    """Find the past of tasks whose first event here is not their first one: in one query, as a rule."""
    first = unknown_tasks(events, pasts)
    if not first:
        return
    versions = {subject.partition(":")[2]: version for subject, version in first.items()}
    found = store.rollups.tasks_before(account, versions)
    for event in events:
        if first.get(event.subject) != event.version:
            continue
        task_type, earlier = found.get(event.subject.partition(":")[2], (None, None))
        past = past_of(task_type, () if earlier is None else (earlier,))
        if not is_past_known(past, event):
            past = _read_past(store, account, task_type, event)
        pasts[event.subject] = past


def _read_past(store: Store, account: str, task_type: str | None, event: Event) -> TaskPast:
    with store.read() as reader:
        recent = reader.recent_events(account, event.subject, EARLIER_EVENTS)
    return past_of(task_type, (each for each in reversed(recent) if each.version < event.version))
