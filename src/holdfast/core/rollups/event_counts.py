"""Counts events into one-minute roll-ups, and samples the current numbers of tasks and held work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from holdfast.core.event import RENEWALS, SNAPSHOT, Event
from holdfast.core.event_filter import is_election_event
from holdfast.core.rollups.histogram import observe
from holdfast.core.rollups.intervals import RESOLUTIONS, Resolution
from holdfast.core.rollups.rollup import Rollup, TaskCounts, limit_types, merge
from holdfast.core.row import Instant
from holdfast.core.task.row import CLAIMED, EXHAUSTED, LEASE_EXPIRED, PENDING, PERMANENT, Task
from holdfast.decoding import decoder

_TASKS = f"{Task.noun}:"
_COUNTED = {
    f"{Task.noun}.{verb}": verb for verb in ("created", "claimed", "completed", "failed", "expired", "dead_lettered")
}
_NAMES = {
    "lease.claimed": "claimed",
    "reservation.reserved": "claimed",
    "lease.expired": "expired",
    "reservation.expired": "expired",
}


class TaskPast(msgspec.Struct, frozen=True):
    """What must be known of a task before its next event is counted."""

    type: str | None = None
    """None if nobody knows it any more."""
    claimable_since: Instant | None = None
    claimed_at: Instant | None = None


class _Changes(msgspec.Struct):
    """The columns of an event's data that matter here."""

    type: str | UnsetType = UNSET
    ready: bool | UnsetType = UNSET
    scheduled_at: Instant | UnsetType | None = UNSET
    claimed_at: Instant | UnsetType | None = UNSET
    dead_cause: str | UnsetType | None = UNSET


_decode = decoder(_Changes)


def unknown_tasks(events: Iterable[Event], pasts: Mapping[str, TaskPast]) -> dict[str, int]:
    """Tasks whose past must be looked up before these events are counted: subject, and version of its first event."""
    found: dict[str, int] = {}
    for event in events:
        if _is_task_event(event) and event.subject not in pasts and event.version > 1:
            found.setdefault(event.subject, event.version)
    return found


def past_of(task_type: str | None, earlier: Iterable[Event]) -> TaskPast:
    """The past of a task after earlier events of it, oldest first."""
    past = TaskPast(task_type)
    for event in earlier:
        past = _follow(past, event, _changes(event))
    return past


def is_past_known(past: TaskPast, event: Event) -> bool:
    """Whether the past is enough to count the task's next event: only some events need a time."""
    if event.kind == "task.claimed":
        return past.claimable_since is not None
    if event.kind in {"task.completed", "task.failed", "task.dead_lettered"}:
        return past.claimed_at is not None
    return True


def count_events(events: Iterable[Event], pasts: dict[str, TaskPast], into: dict[Instant, Rollup]) -> None:
    """Count events into the roll-ups of their minutes; `pasts` has every task of `unknown_tasks` and is kept true."""
    minutes = RESOLUTIONS[0]
    for event in events:
        if event.kind in _NAMES and not is_election_event(event):
            rollup = into.setdefault(minutes.start_of(event.at), Rollup())
            name = _NAMES[event.kind]
            setattr(rollup, name, getattr(rollup, name) + 1)
        elif _is_task_event(event):
            changes, past = _changes(event), pasts.get(event.subject, TaskPast())
            after = _follow(past, event, changes)
            if event.kind in _COUNTED:
                counts = into.setdefault(minutes.start_of(event.at), Rollup()).of_type(after.type)
                _count(counts, _COUNTED[event.kind], past, event.at, changes)
            pasts[event.subject] = after


def _count(counts: TaskCounts, verb: str, past: TaskPast, at: Instant, changes: _Changes) -> None:
    if verb == "dead_lettered":
        counts.dead += 1
        verb = {EXHAUSTED: "failed", PERMANENT: "failed", LEASE_EXPIRED: "expired"}.get(str(changes.dead_cause), "")
    if verb:
        setattr(counts, verb, getattr(counts, verb) + 1)
    if verb == "claimed" and past.claimable_since is not None:
        observe(counts.waits, max(at - past.claimable_since, 0))
    elif verb in {"completed", "failed"} and past.claimed_at is not None:
        observe(counts.runs, max(at - past.claimed_at, 0))


def _follow(past: TaskPast, event: Event, changes: _Changes) -> TaskPast:
    """The past after one more event.

    A task is claimable since it was put into its queue, or since its scheduled time, even if the sweep was late.
    """
    task_type = past.type if changes.type is UNSET else changes.type
    if event.kind.endswith(f".{SNAPSHOT}"):  # has every column, and says nothing of when they changed
        return replace(past, type=task_type)
    claimed_at = past.claimed_at if changes.claimed_at is UNSET else changes.claimed_at
    since = past.claimable_since
    if claimed_at is not None:
        since = None
    elif changes.ready is True:
        since = event.at if since is None or since > event.at else since
    elif changes.scheduled_at is not UNSET and changes.scheduled_at is not None:
        since = changes.scheduled_at
    elif changes.ready is False:
        since = None
    return TaskPast(task_type, since, claimed_at)


def _is_task_event(event: Event) -> bool:
    return event.subject.startswith(_TASKS) and event.kind not in RENEWALS


def _changes(event: Event) -> _Changes:
    try:
        return _decode(event.data)
    except msgspec.DecodeError:  # a damaged event is counted, but tells no time
        return _Changes()


def sample(tasks: Sequence[tuple[str, str, int]], delayed: Mapping[str, int], held: tuple[int, int, int]) -> Rollup:
    """The numbers of one moment.

    `tasks` is (type, state, count), `delayed` how many tasks of a type cannot be claimed yet, and `held` how many jobs
    and locks, reservations, and tasks are held.
    """
    names, files, claimed = held
    found = Rollup(held_names=names, held_files=files, held_tasks=claimed, pending=0, delayed=sum(delayed.values()))
    for task_type, state, count in tasks:
        if count and state in {PENDING, CLAIMED}:
            counts = found.of_type(task_type)
            counts.delayed = delayed.get(task_type, 0)
            counts.pending = (counts.pending or 0) + (count if state == PENDING else 0)
            counts.running = (counts.running or 0) + (count if state == CLAIMED else 0)
            found.pending = (found.pending or 0) + (count if state == PENDING else 0)
    limited = limit_types(found)
    for name in ("pending", "delayed", "running") if len(found.types) > len(limited.types) else ():
        rest = (getattr(counts, name) or 0 for each, counts in found.types.items() if each not in limited.types)
        setattr(limited.other, name, sum(rest))  # at one moment they add up
    return limited


def by_resolution(minutes: Mapping[Instant, Rollup], now: Instant) -> dict[tuple[Instant, Instant], Rollup]:
    """(length, start) and roll-up of every interval that these minutes are in and that is still kept."""
    found: dict[tuple[Instant, Instant], Rollup] = {}
    for at, rollup in minutes.items():
        for resolution in RESOLUTIONS:
            start = _interval(resolution, at, now)
            if start is not None:
                key = (resolution.length, start)
                found[key] = merge(found.get(key, Rollup()), rollup)
    return found


def _interval(resolution: Resolution, at: Instant, now: Instant) -> Instant | None:
    """The interval of a time, which is never after `now`; None if it is not kept any more."""
    start = resolution.start_of(min(at, now))
    return start if start >= resolution.kept_since(now) else None
