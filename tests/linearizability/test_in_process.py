"""Histories of workers on every store inside one process: driven time, broken commits, engines that share a store."""

from __future__ import annotations

import pytest

from tests.linearizability.checks.whole_check import check, require
from tests.linearizability.in_process import record
from tests.proof_size import FULL, OPERATIONS, sized
from tests.support import DrivenClock, make_store

ALWAYS = ("lost", "held", "granted", "takeover", "lease.expired")
LONG_RUN = (
    "released", "done", "completed", "failed", "taken", "session_over", "task.expired", "session.expired",
    "session.ended", "lease.handed_over",
    "task.dead_lettered", "lease.reissued", "resumed with holdings", "unknown and applied", "unknown and not applied",
    "unavailable",
)  # fmt: skip
CALLS = {"memory": 24_000, "sqlite": 7_000, "postgres": 4_000}


@pytest.fixture
def open_stores(tmp_path, new_postgres_database):
    """Opens one store for each engine; returns them and the clock that drives them."""

    def open_stores(kind, engines):
        clock = None if kind == "postgres" else DrivenClock()  # PostgreSQL's own clock is read under its locks
        url = new_postgres_database() if kind == "postgres" else ""
        return [make_store(kind, tmp_path, lambda: url, clock) for _ in range(engines)], clock

    return open_stores


@pytest.mark.parametrize("part", range(sized(1, 20)))
@pytest.mark.parametrize(("kind", "engines"), [("memory", 1), ("sqlite", 1), ("sqlite", 2), ("postgres", 2)])
def test_every_answer_fits_one_order_of_all_calls(kind, engines, part, open_stores, covered):
    stores, clock = open_stores(kind, engines)
    calls = sized(600, CALLS[kind])
    history = record(stores, clock, seed=part + 100, calls=calls, groups=sized(6, 8), fault_rate=0.06)
    for store in stores:
        store.close()
    seen = check(history)
    require(seen, *ALWAYS, *(LONG_RUN if FULL and clock else ()))  # in real time, a busy machine does less
    assert seen["searched"] > 0.9 * len(history.calls)
    covered(OPERATIONS, len(history.calls))
