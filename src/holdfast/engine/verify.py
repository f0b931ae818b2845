"""Verification of a store: that its logs have no gaps, and that every row equals the fold of its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from holdfast.core.errors import DamagedRow
from holdfast.core.event import BrokenLog, DamagedLog, fold, row_image, subject_of
from holdfast.core.log_gap import RESTORED, is_log_subject, is_next, last_kept_seq
from holdfast.core.page import PAGE_BYTES, is_full
from holdfast.core.row import Key, Row
from holdfast.core.task import Task
from holdfast.store.contract import Reader, Store
from holdfast.store.contract.reads import whole_history
from holdfast.store.rows import ROW_TYPES

PAGE = 1_000
MAX_CHECKS = 3
"""A row that changes during a check may differ from its log for a moment, so a difference is checked again."""
MAX_MISSING = 100
"""More events that are missing in a row are one difference."""

Progress = Callable[[str, int], None]


class Report(msgspec.Struct):
    """How much was verified, and the differences found."""

    accounts: int = 0
    rows: int = 0
    events: int = 0
    differences: list[str] = []
    subjects: dict[str, Key] = {}
    """What a difference is about, by its text: (table, account, id); the id is empty for the counts of an account."""
    damaged: list[str] = []
    """Rows that cannot be used: table, key and what is wrong."""


def verify(store: Store, progress: Progress = lambda *_: None) -> Report:
    """Verify every row and every event. `progress` is called with what was counted and how many so far."""
    report = Report()
    counted: Counter[tuple[str, str, str]] = Counter()
    for row_type in ROW_TYPES:
        for row in _rows(store, row_type):
            report.rows += 1
            progress("rows", report.rows)
            if isinstance(row, Task):
                counted[row.account, row.type, row.state] += 1
            _check(report, row.key, partial(_difference, store, row))
    with store.read() as reader:
        accounts = reader.log_accounts()
    report.accounts = len(accounts)
    for account in accounts:
        _verify_log(store, account, report, progress)
        if not any(key[:2] == (Task.table, account) for key in store.damaged_rows.known()):
            _check(report, ("task_counts", account, ""), partial(_miscounted, store, account, counted))
    store.check_other_records()
    report.damaged = [f"{' '.join(key)}: {damage}" for key, damage in sorted(store.damaged_rows.known().items())]
    return report


def _check(report: Report, subject: Key, find_difference: Callable[[], str | None]) -> None:
    """Report a difference if it is still there after `MAX_CHECKS` checks."""
    found: str | None = None
    for _ in range(MAX_CHECKS):
        found = find_difference()
        if found is None:
            return
    assert found is not None
    _add(report, found, subject)


def _add(report: Report, difference: str, subject: Key) -> None:
    report.differences.append(difference)
    report.subjects[difference] = subject


def _rows(store: Store, row_type: type[Row]) -> Iterator[Row]:
    cursor = ("", "")
    while True:
        with store.read() as reader:
            page = reader.rows_after(row_type, *cursor, PAGE, PAGE_BYTES)
        yield from page
        if not is_full(page, PAGE, PAGE_BYTES):
            return
        cursor = page[-1].key[1:]


def _difference(store: Store, row: Row) -> str | None:
    """How a row differs from the fold of its events, or None; damage is reported apart."""
    subject = subject_of(row)
    with store.read() as reader:
        try:
            now = reader.row(type(row), row.account, row.id)
            folded = fold(type(row)(row.account, row.id), whole_history(reader, row.account, subject))
        except (DamagedRow, DamagedLog):
            return None
        except BrokenLog as error:
            return f"{row.account} {error}"
    image = None if now is None else row_image(now)
    if folded == image:
        return None
    if folded is None or image is None:
        return f"{row.account} {subject}: by the log it {'was removed' if folded is None else 'exists'}"
    columns = [name for name in image if folded.get(name) != image[name]]
    return f"{row.account} {subject}: {', '.join(columns)} differ from the log"


def _verify_log(store: Store, account: str, report: Report, progress: Progress) -> None:
    """Check that no event is missing, apart from marked restore gaps."""
    with store.read() as reader:
        cursor, last = reader.log_bounds(account)
    while cursor < last:
        with store.read() as reader:
            page = reader.events(account, cursor, PAGE, PAGE_BYTES)
        with store.read() as reader:
            floor = reader.log_bounds(account)[0]  # retention may have run between the two reads
        position = max(cursor, floor if page and page[0].seq > floor else cursor)
        for event in page:
            if not is_next(event, position):
                kept = last_kept_seq(event) if event.kind == RESTORED else 0
                _add_missing(report, account, position + 1, kept if kept > position else event.seq - 1)
            position = event.seq
        if not page:
            if floor < last:
                _add_missing(report, account, max(cursor, floor) + 1, last)
            break
        report.events += len(page)
        progress("events", report.events)
        cursor = page[-1].seq
    _verify_subjects(store, account, report)


def _add_missing(report: Report, account: str, first: int, last: int) -> None:
    """Report events that are missing from the log, those of a long gap as one difference."""
    if last - first >= MAX_MISSING:
        report.differences.append(f"{account}: events {first} to {last} are missing from the log")
        return
    for seq in range(first, last + 1):
        _add(report, f"{account}: event {seq} is missing from the log", ("events", account, str(seq)))


def _verify_subjects(store: Store, account: str, report: Report) -> None:
    """Check that every row in the log is stored, or that its removal is logged."""
    types = {row_type.noun: row_type for row_type in ROW_TYPES}
    subject = ""
    while True:
        with store.read() as reader:
            subjects = reader.subjects_after(account, subject, PAGE)
        for subject in subjects:
            if is_log_subject(subject):
                continue
            noun, _, row_id = subject.partition(":")
            if noun in types:
                row = types[noun](account, row_id)
                _check(report, row.key, partial(_missing, store, row))
            else:
                report.differences.append(f"{account}: the log has events of {subject}, which is no kind of row")
        if len(subjects) < PAGE:
            return


def _missing(store: Store, row: Row) -> str | None:
    """How a logged row that is absent from the store differs from the log; None if its removal is logged."""
    with store.read() as reader:
        try:
            exists = reader.row(type(row), row.account, row.id) is not None
        except DamagedRow:
            exists = True
    return None if exists else _difference(store, row)


def _miscounted(store: Store, account: str, counted: Counter[tuple[str, str, str]]) -> str | None:
    """The stored task counts that are wrong; None if there are none, or if the log grew during the comparison."""

    def stored(reader: Reader) -> dict[tuple[str, str, str], int]:
        return {(account, task_type, state): total for task_type, state, total in reader.task_counts(account)}

    with store.read() as reader:
        before = reader.log_bounds(account)
        counts = stored(reader)
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
            return None
    wrong = sorted(key[1:] for key in counts.keys() | real.keys() if counts.get(key, 0) != counted.get(key, 0))
    return f"{account}: tasks are miscounted: {', '.join('/'.join(key) for key in wrong)}" if wrong else None
