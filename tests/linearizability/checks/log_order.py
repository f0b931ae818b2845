"""Check of a history against the order of the store's log: fast enough for a million calls.

Every change is in the log under the id of the call that asked for it. The calls with events are replayed through the
model in the order of the log; what an unknown outcome did is known from its events. A call without events must fit
somewhere between the changes that were complete when it was made and those that began before it returned, and no
earlier than any call without events that returned before it was made.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.linearizability.checks.rows import Row, changes_without_call, matches
from tests.linearizability.checks.search import is_read, not_applied
from tests.linearizability.history import FOREVER, Call, History
from tests.linearizability.model import blank_state, effects
from tests.linearizability.model.objects import BLANK, Changes, Key
from tests.log_entry import LogEntry


class Violation(AssertionError):
    """The history cannot be explained; `calls` and `events` are those of the group that shows it."""

    def __init__(self, message: str, group: str = "", calls: list[Call] | None = None, log: Any = ()) -> None:
        super().__init__(message)
        self.group = group
        self.calls = calls or []
        self.log: list[LogEntry] = list(log)


@dataclass
class Change:
    """The effect of one call, or of the server itself if `call` is None."""

    call: Call | None
    events: list[LogEntry]


@dataclass
class Group:
    """The calls of a group, its changes in the order of the log, and each object's states after them."""

    name: str
    calls: list[Call]
    changes: list[Change] = field(default_factory=list)
    state: dict[Key, Any] = field(default_factory=dict)
    past: dict[Key, tuple[list[int], list[Any]]] = field(default_factory=dict)
    """By object: the numbers of the changes that changed it, and its state after each."""


class StateAfter(Mapping[Key, Any]):
    """The state of a group after its first `number` changes."""

    def __init__(self, group: Group, number: int) -> None:
        self._group = group
        self._number = number

    def __getitem__(self, key: Key) -> Any:
        numbers, states = self._group.past.get(key, ([], []))
        place = bisect_right(numbers, self._number)
        return states[place - 1] if place else BLANK[key[0]]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._group.state)

    def __len__(self) -> int:
        return len(self._group.state)


def check_log_order(history: History) -> None:
    """Raise Violation unless every call fits the order of the log."""
    check_numbers(history.log)
    by_id = {call.id: call for call in history.calls}
    groups = {name: Group(name, calls, state=blank_state(calls)) for name, calls in history.groups().items()}
    group_of = {key: group for group in groups.values() for key in group.state}
    for change in _changes(history.log, by_id):
        noun, _, name = change.events[0].subject.partition(":")
        group = groups[change.call.group] if change.call else group_of.get((noun.replace("lease", "job"), name))
        if group is not None:
            group.changes.append(change)
    for group in groups.values():
        _replay(group)
        _check_real_time(group)


def check_numbers(log: list[LogEntry]) -> None:
    """Numbers of events and versions of subjects have no gaps."""
    versions: dict[str, int] = {}
    for before, entry in zip([None, *log], log, strict=False):
        if before is not None and entry.seq != before.seq + 1:
            raise Violation(f"event {entry.seq} follows event {before.seq}", log=[before, entry])
        if entry.version != versions.get(entry.subject, 0) + 1:
            raise Violation(f"{entry.subject} has no version before {entry.version}", log=[entry])
        versions[entry.subject] = entry.version


def _changes(log: list[LogEntry], by_id: dict[str, Call]) -> Iterator[Change]:
    """The log cut into the effects of calls, and into single events of the server itself."""
    current: Change | None = None
    closed: set[str] = set()
    for entry in log:
        call = _cause(entry, by_id)
        if call is None and current is not None and current.call and current.call.id == entry.request_id:
            yield Change(None, [entry])  # found expired by that call, before its own change
            continue
        if current is not None and call is not None and current.call is call:
            current.events.append(entry)
            continue
        if call is not None and call.id in closed:
            raise Violation(f"the events of one call are not together: {call}", call.group, [call], [entry])
        if current is not None:
            yield current
        if call is not None:
            closed.add(call.id)
        current = Change(call, [entry])
    if current is not None:
        yield current


def _cause(entry: LogEntry, by_id: dict[str, Call]) -> Call | None:
    """The call that asked for a change. A claim that waits ends an expired lease before it is its turn, for others.

    A request for files ends expired reservations that are near, whether they conflict or not.
    """
    call = by_id.get(entry.request_id)
    if call is not None and "wait_seconds" in call.args and entry.kind == "lease.expired":
        return None
    return None if entry.kind == "reservation.expired" else call


def _replay(group: Group) -> None:
    """Apply the changes in the order of the log; the model must allow each, and end with the rows of the log."""
    rows: dict[str, Row] = {}
    waiting: set[Key] = set()
    last = 0
    for number, change in enumerate(group.changes, start=1):
        for entry in change.events:
            rows[entry.subject] = rows.get(entry.subject, {}) | entry.data
        touched = {_key(entry.subject) for entry in change.events}
        if waiting and (change.events[0].seq != last + 1 or waiting.isdisjoint(touched)):
            raise _violation(group, change, f"before this event a session ended and left {sorted(waiting)} behind")
        last = change.events[-1].seq
        if change.call is None:
            found = changes_without_call(group.state, change.events[0], rows, group.calls)
        else:
            found = _effect(group, change.call, change.events, rows)
        if found is None:
            raise _violation(group, change, "the log has a change that the model does not allow")
        waiting = (waiting | found.keys()) - touched
        _apply(group, number, found)
    if waiting:
        raise _violation(group, group.changes[-1], f"a session ended and left {sorted(waiting)} behind")


def _effect(group: Group, call: Call, events: list[LogEntry], rows: dict[str, Row]) -> Changes | None:
    """What the call did, of all that the model allows: that which equals the rows of the log."""
    if not_applied(call) or is_read(call):
        return None
    touched, at = {_key(entry.subject) for entry in events}, events[-1].at
    if not call.earliest <= at <= call.latest:
        return None
    for changes in effects(group.state, call, at):
        if changes.keys() == touched:
            exact = {key: matches(group.state[key], after, rows[_subject(key)]) for key, after in changes.items()}
            if None not in exact.values():
                return exact
    return None


def _apply(group: Group, number: int, changes: Changes) -> None:
    for key, after in changes.items():
        group.state[key] = after
        numbers, states = group.past.setdefault(key, ([], []))
        numbers.append(number)
        states.append(after)


def _check_real_time(group: Group) -> None:
    """Place every call without events, and compare the order with the times at which calls were made and answered."""
    begun, latest_begun = [-FOREVER], -FOREVER
    for change in group.changes:
        if change.call is not None:
            if change.call.returned < latest_begun:
                raise _violation(group, change, "it returned before a change that precedes it in the log was asked for")
            latest_begun = max(latest_begun, change.call.called)
        begun.append(latest_begun)
    returned = [FOREVER] * (len(group.changes) + 2)
    for number in range(len(group.changes), 0, -1):
        call = group.changes[number - 1].call
        returned[number] = min(returned[number + 1], call.returned if call else FOREVER)
    returned[0] = -FOREVER
    changed = {id(change.call) for change in group.changes}
    _place_others(group, [call for call in group.calls if id(call) not in changed], begun, returned)


def _place_others(group: Group, others: list[Call], begun: list[int], returned: list[int]) -> None:
    placed: list[tuple[int, int]] = []
    """(when it returned, after how many changes it was placed), in order of both: a later place at a later time."""
    for call in sorted(others, key=lambda call: call.called):
        if call.answer is None or not_applied(call):
            continue
        first = bisect_left(returned, call.called, hi=len(returned) - 1) - 1
        before = bisect_left(placed, (call.called, -1))
        first = max(first, placed[before - 1][1]) if before else first
        last = bisect_right(begun, call.returned) - 1
        for number in range(first, last + 1):
            if any(not changes for changes in effects(StateAfter(group, number), call)):
                _note_place(placed, call.returned, number)
                break
        else:
            log = [entry for change in group.changes[max(first - 2, 0) : last + 2] for entry in change.events]
            message = f"its answer fits no state between changes {first} and {last} of its group:\n{call}"
            raise Violation(message, group.name, [*group.calls], log)


def _note_place(placed: list[tuple[int, int]], returned: int, number: int) -> None:
    """Remember a place, unless an earlier return already forces the same."""
    at = bisect_left(placed, (returned, number))
    if at and placed[at - 1][1] >= number:
        return
    while at < len(placed) and placed[at][1] <= number:
        del placed[at]
    placed.insert(at, (returned, number))


def _violation(group: Group, change: Change, message: str) -> Violation:
    about = "" if change.call is None else f"\n{change.call}"
    events = "".join(f"\n{entry}" for entry in change.events)
    return Violation(f"{message}:{about}{events}", group.name, group.calls, change.events)


def _key(subject: str) -> Key:
    noun, _, name = subject.partition(":")
    return ("job" if noun == "lease" else noun, name)


def _subject(key: Key) -> str:
    return f"{'lease' if key[0] == 'job' else key[0]}:{key[1]}"
