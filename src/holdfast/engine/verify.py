"""Whether the log tells what the rows say: every event in its place, every row the sum of its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from holdfast.core.event import BrokenLog, fold, row_image, subject_of
from holdfast.core.log_gap import is_log_subject, is_next
from holdfast.core.row import Row
from holdfast.core.task import Task
from holdfast.store.contract import Reader, Store
from holdfast.store.rows import ROW_TYPES

PAGE = 1_000
LOOKS = 3
"""A row that is being changed while we look may differ from its log for a moment."""

Tell = Callable[[str, int], None]


class Report(msgspec.Struct):
    """What was looked at, and what does not fit."""

    accounts: int = 0
    rows: int = 0
    events: int = 0
    differences: list[str] = []


def verify(store: Store, tell: Tell = lambda *_: None) -> Report:
    """Look at everything once. `tell` hears how far it has come."""
    report = Report()
    counted: Counter[tuple[str, str, str]] = Counter()
    for row_type in ROW_TYPES:
        for row in _rows(store, row_type):
            report.rows += 1
            tell("rows", report.rows)
            if isinstance(row, Task):
                counted[row.account, row.type, row.state] += 1
            _check(report, partial(_difference, store, row))
    with store.read() as reader:
        accounts = reader.log_accounts()
    report.accounts = len(accounts)
    for account in accounts:
        _verify_log(store, account, report, tell)
        _check(report, partial(_miscounted, store, account, counted))
    return report


def _check(report: Report, look: Callable[[], str | None]) -> None:
    """Note a difference that stays."""
    found: str | None = None
    for _ in range(LOOKS):
        found = look()
        if found is None:
            return
    assert found is not None
    report.differences.append(found)


def _rows(store: Store, row_type: type[Row]) -> Iterator[Row]:
    place = ("", "")
    while True:
        with store.read() as reader:
            page = reader.rows_after(row_type, *place, PAGE)
        yield from page
        if len(page) < PAGE:
            return
        place = page[-1].key[1:]


def _difference(store: Store, row: Row) -> str | None:
    """How a row differs from the sum of its events, if it does."""
    subject = subject_of(row)
    with store.read() as reader:
        now = reader.row(type(row), row.account, row.id)
        history = reader.history(row.account, subject)
    try:
        told = fold(type(row)(row.account, row.id), history)
    except BrokenLog as error:
        return f"{row.account} {error}"
    shown = None if now is None else row_image(now)
    if told == shown:
        return None
    if told is None or shown is None:
        return f"{row.account} {subject}: the log says {'it is gone' if told is None else 'it is there'}"
    columns = [name for name in shown if told.get(name) != shown[name]]
    return f"{row.account} {subject}: {', '.join(columns)} differ from the log"


def _verify_log(store: Store, account: str, report: Report, tell: Tell) -> None:
    """Events stand in their places, gaps of restores are marked; whom they tell of is there, or told to be gone."""
    with store.read() as reader:
        seen, last = reader.log_bounds(account)
    while seen < last:
        with store.read() as reader:
            page = reader.events(account, seen, PAGE)
        with store.read() as reader:
            floor = reader.log_bounds(account)[0]  # retention may have come between the two
        place = max(seen, floor if page and page[0].seq > floor else seen)
        for event in page:
            if not is_next(event, place):
                report.differences.append(f"{account}: event {place + 1} is missing from the log")
                break
            place = event.seq
        if not page:
            if floor < last:
                report.differences.append(f"{account}: events {max(seen, floor) + 1} to {last} are missing")
            return
        report.events += len(page)
        tell("events", report.events)
        seen = page[-1].seq
    types = {row_type.noun: row_type for row_type in ROW_TYPES}
    subject = ""
    while True:
        with store.read() as reader:
            subjects = reader.subjects_after(account, subject, PAGE)
        for subject in subjects:
            if is_log_subject(subject):
                continue
            noun, _, row_id = subject.partition(":")
            _check(report, partial(_lost, store, types[noun](account, row_id)))
        if len(subjects) < PAGE:
            return


def _lost(store: Store, row: Row) -> str | None:
    """A row that the log tells of and that is not there, without the log saying so."""
    with store.read() as reader:
        there = reader.row(type(row), row.account, row.id) is not None
    return None if there else _difference(store, row)


def _miscounted(store: Store, account: str, counted: Counter[tuple[str, str, str]]) -> str | None:
    """Counts that differ from the tasks there are; asked again as long as somebody writes meanwhile."""

    def kept(reader: Reader) -> dict[tuple[str, str, str], int]:
        return {(account, task_type, state): total for task_type, state, total in reader.task_counts(account)}

    with store.read() as reader:
        before = reader.log_bounds(account)
        counts = kept(reader)
    real = {key: total for key, total in counted.items() if key[0] == account}
    if counts == real:
        return None
    fresh: Counter[tuple[str, str, str]] = Counter(
        (row.account, row.type, row.state) for row in _rows(store, Task) if isinstance(row, Task)
    )
    counted.clear()
    counted.update(fresh)
    with store.read() as reader:
        if reader.log_bounds(account) != before:
            return None  # somebody is at work: the two cannot be compared
    wrong = sorted(key[1:] for key in counts.keys() | real.keys() if counts.get(key, 0) != counted.get(key, 0))
    return f"{account}: tasks are miscounted: {', '.join('/'.join(key) for key in wrong)}" if wrong else None
