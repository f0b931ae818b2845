"""A program with workers on an engine of its own, which a test can kill or suspend.

Its options are the store's `url`, its `name` and `seed`, how many `calls` to make at least, the file whose existence
says that it is `enough`, the `file` for the record, the `ttl` in microseconds, whether it is `serving`, whether the
store's clock is `steady`, and in `run` more arguments of EngineRun. Each line of the record is a call, written before
it is made, or an answer. A call without an answer has an unknown outcome.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from holdfast.core.errors import OutcomeUnknown, StoreUnavailable
from holdfast.engine.engine import Engine
from holdfast.settings import sqlite_path
from holdfast.store.contract import Store
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from tests.linearizability.clients.engine_run import EngineRun
from tests.linearizability.clients.store_time import MeasuredTime, UnknownTime
from tests.linearizability.history import Call, History
from tests.log_entry import LogEntry

T = TypeVar("T")


class Recorder:
    """Appends calls and answers to a file. What is written survives the process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._encode = msgspec.json.encode

    def record(self, calls: list[Call]) -> None:
        """Append these calls, each with its answer if it has one."""
        if calls:
            os.write(self._file, b"".join(self._encode(asdict(call)) + b"\n" for call in calls))


def read_calls(path: Path) -> list[Call]:
    """The calls that a program wrote; the last line may be cut off."""
    found: dict[str, Call] = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        call = Call(**msgspec.json.decode(line))
        found[call.id] = call
    return list(found.values())


def open_store(url: str) -> Store:
    store: Store = SqliteStore(sqlite_path(url)) if url.startswith("sqlite:") else PostgresStore(url)
    until_available(store.open)
    return store


def until_available(action: Callable[[], T]) -> T:
    """Do it; again, if the connection is cut meanwhile. It is safe to repeat."""
    for _ in range(20):
        with suppress(StoreUnavailable, OutcomeUnknown):
            return action()
        time.sleep(0.2)
    raise AssertionError("the store did not become available")


def read_history(url: str, paths: list[Path]) -> History:
    """The calls of several programs, and the log of their store."""
    from tests.linearizability.in_process import log_of

    store = open_store(url)
    try:
        log: list[LogEntry] = log_of(store)
    finally:
        store.close()
    return History([call for path in paths for call in read_calls(path)], log)


def run(options: dict[str, Any]) -> None:
    """Make the calls, and more until the test has caused all its faults; then end."""
    logging.disable(logging.CRITICAL)
    store = open_store(options["url"])
    engine = Engine(store, serving=options["serving"])

    def now() -> int:
        with store.read() as reader:
            return reader.now

    store_time = until_available(lambda: MeasuredTime(now)) if options["steady"] else UnknownTime()
    rng, record = random.Random(options["seed"]), Recorder(Path(options["file"])).record
    try:
        engine.start()
    except StoreUnavailable:  # the connection was cut: a server ends then, too
        return
    EngineRun([engine], store_time, rng, options["name"], options["ttl"], record=record, **options["run"]).run(
        options["calls"], enough=Path(options["enough"]).exists
    )
    engine.stop()
    store.close()
