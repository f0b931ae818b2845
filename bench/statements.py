"""The SQL statements of claims on SQLite, executed without Holdfast: what they cost, no server around them can save."""

from __future__ import annotations

import itertools
import re
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.engine import BY, CAUSE
from bench.figures import Figures
from holdfast.core.event import Event
from holdfast.core.row import SECOND
from holdfast.engine.batches.transaction import BatchTransaction
from holdfast.engine.ticket import FutureSink, Ticket
from holdfast.engine.verbs.job_claims import ClaimJob
from holdfast.store.sqlite import SqliteStore, queries
from holdfast.telemetry.registry import Registry

SIZES = (1, 64)
"""Claims in one transaction."""
WARM_UP = 20
"""Transactions before one is recorded."""

Statement = tuple[str, tuple[Any, ...]]


def measure_statements(figures: Figures, folder: Path, seconds: float) -> None:
    """One round: processor time for each claim, alone in its transaction and with 63 others."""
    for size in SIZES:
        figures.add(f"sqlite.statements.{size}.cpu", seconds_of_statements(folder, size, seconds))


def seconds_of_statements(folder: Path, size: int, seconds: float) -> float:
    """Processor time of the statements for each claim of a transaction; every transaction is flushed."""
    store = SqliteStore(folder / f"statements-{uuid.uuid4().hex}.db")
    store.open()
    recorded = record(store, size)
    writer = store._writer
    assert writer is not None
    spent, until, done = 0.0, time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        done += size
        again = [(statement, [_renamed(value, done) for value in values]) for statement, values in recorded]
        before = time.process_time()
        execute(writer.execute, again)
        spent += time.process_time() - before
    store.close()
    return spent / done


def record(store: SqliteStore, size: int) -> list[Statement]:
    """The statements of the last of several transactions, each with so many claims of new jobs."""
    transaction = BatchTransaction(store, 0, Registry())
    numbers = itertools.count()
    for _ in range(WARM_UP):
        statements: list[Statement] = []

        def note(_: Any, statement: str, arguments: Any, into: list[Statement] = statements) -> bool:
            into.append((statement, tuple(arguments or ())))
            return True

        assert store._writer is not None
        store._writer.exec_trace = note
        transaction.run([Ticket(_claim(next(numbers)), FutureSink()) for _ in range(size)])
        store._writer.exec_trace = None
    return statements


def execute(run: Callable[..., Any], statements: list[tuple[str, list[Any]]]) -> None:
    """Execute the statements of a transaction; its events get the numbers that follow."""
    following = itertools.count()
    for statement, values in statements:
        if statement.startswith(_INSERT_EVENTS):
            values[_SEQ::_COLUMNS] = itertools.islice(following, len(values) // _COLUMNS)
        found = run(statement, values).fetchall()
        if statement == queries.COUNT_EVENTS:
            following = itertools.count(found[0][0] - values[1] + 1)


def _renamed(value: Any, shift: int) -> Any:
    """The value with other names: their numbers are larger by `shift`."""
    if not isinstance(value, str):
        return value
    return _NUMBER.sub(lambda found: f"{int(found[0]) + shift:08}", value)


def _claim(number: int) -> ClaimJob:
    return ClaimJob(
        account="default", cause=CAUSE, name=f"statements/{number:08}", by=BY, owner="bench",
        lease_id=str(uuid.uuid4()), holder=str(uuid.uuid4()), ttl=3600 * SECOND,
    )  # fmt: skip


_NUMBER = re.compile(r"(?<=statements/)\d{8}")
_INSERT_EVENTS = queries.insert_event(1).split("(", 1)[0]
_COLUMNS, _SEQ = len(Event.__struct_fields__), Event.__struct_fields__.index("seq")
