"""The check finds bugs that are planted in the product while it runs, with the log and without it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import offer as offers
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.errors import LeaseGone, LeaseMismatch, StoreUnavailable
from holdfast.core.reservation import lifecycle
from holdfast.engine import expiry
from holdfast.engine.batches import ready_heap
from holdfast.engine.verbs import job_claims
from holdfast.engine.view import View
from holdfast.store.memory.reader import MemoryReader
from holdfast.store.memory.store import MemoryStore
from holdfast.store.memory.transaction import MemoryTransaction
from tests.linearizability import faults
from tests.linearizability.checks.log_order import Violation, check_log_order
from tests.linearizability.checks.search import TooHard, has_order
from tests.linearizability.checks.whole_check import check, require
from tests.linearizability.history import History
from tests.linearizability.in_process import record
from tests.support import DrivenClock

CALLS, SEEDS = 400, 20
Patch = pytest.MonkeyPatch


def run(seed: int) -> History:
    clock = DrivenClock()
    return record([MemoryStore(clock)], clock, seed=seed, calls=CALLS, groups=3, fault_rate=0.1)


# -- bugs in the product ---------------------------------------------------------------------------------------------


def two_holders_at_once(patch: Patch) -> None:
    find = job_claims.expire_lease_if_due
    patch.setattr(job_claims, "expire_lease_if_due", lambda *given: replace(find(*given), expires_at=None))


def a_stale_renewal_accepted(patch: Patch) -> None:
    def check_holder(lease: Any, proof: str, now: int) -> None:
        if lease.proof is None:
            raise LeaseGone("it is free")

    patch.setattr(leases, "check_holder", check_holder)


def a_renewal_accepted_after_the_deadline(patch: Patch) -> None:
    def check_holder(lease: Any, proof: str, now: int) -> None:
        if lease.proof != proof:
            raise LeaseMismatch("it is held under another lease")

    patch.setattr(leases, "check_holder", check_holder)


def a_token_used_again(patch: Patch) -> None:
    draw = MemoryTransaction.draw
    patch.setattr(MemoryTransaction, "draw", lambda self, count: [1 + token % 16 for token in draw(self, count)])


def a_lease_that_expires_a_microsecond_early(patch: Patch) -> None:
    patch.setattr(leases, "is_due", lambda lease, now: lease.expires_at is not None and lease.expires_at - 1 <= now)


def a_read_of_old_rows(patch: Patch) -> None:
    row, old, reads = MemoryReader.row, {}, [0]

    def read_old(self: Any, row_type: Any, account: str, row_id: str) -> Any:
        reads[0] += 1
        found = row(self, row_type, account, row_id)
        return old.setdefault(row_id, found) if reads[0] % 4 == 0 else old.update({row_id: found}) or found

    patch.setattr(MemoryReader, "row", read_old)


def an_acknowledged_write_lost(patch: Patch) -> None:
    commit, commits = MemoryTransaction.commit, [0]

    def lose_some(self: Any) -> None:
        commits[0] += 1
        if commits[0] % 10:
            commit(self)

    patch.setattr(MemoryTransaction, "commit", lose_some)


def a_write_that_happened_although_the_answer_said_no(patch: Patch) -> None:
    patch.setattr(faults, "OutcomeUnknown", StoreUnavailable)


def a_task_completed_twice(patch: Patch) -> None:
    completed = lambda task, proof, outcome, **_: task.state == outcome == tasks.COMPLETED
    patch.setattr(tasks, "is_repeat", completed)
    patch.setattr(tasks, "check_same_result", lambda task, **_: None)


def one_task_for_two_workers(patch: Patch) -> None:
    claim = tasks.claim
    patch.setattr(tasks, "claim", lambda task, by, **more: replace(claim(task, by, **more), ready=True))
    for module in (tasks, ready_heap):
        patch.setattr(module, "is_claimable", lambda task, wall: task.state in tasks.LIVE_STATES and task.ready)


def a_session_that_leaves_a_lease_behind(patch: Patch) -> None:
    patch.setattr(expiry, "_free_lease", lambda view, lease, how: lease)


def an_older_generation_that_acts(patch: Patch) -> None:
    patch.setattr(sessions, "check_generation", lambda session, proof, now: None)


def an_answer_with_a_later_deadline_than_the_session(patch: Patch) -> None:
    patch.setattr(View, "effective", lambda self, row: row)


def a_file_reserved_twice(patch: Patch) -> None:
    patch.setattr(lifecycle, "conflicts_with", lambda mine, many: [])


def a_released_path_that_stays_reserved(patch: Patch) -> None:
    patch.setattr(lifecycle, "remove_paths", lambda row, paths: row)


def an_offer_that_outlasts_its_lease(patch: Patch) -> None:
    make = offers.make
    patch.setattr(offers, "make", lambda row, **terms: replace(make(row, **terms), expires_at=row.expires_at))


PRODUCT_BUGS = [
    two_holders_at_once,
    a_stale_renewal_accepted,
    a_renewal_accepted_after_the_deadline,
    a_token_used_again,
    a_lease_that_expires_a_microsecond_early,
    a_read_of_old_rows,
    an_acknowledged_write_lost,
    a_write_that_happened_although_the_answer_said_no,
    a_task_completed_twice,
    one_task_for_two_workers,
    a_session_that_leaves_a_lease_behind,
    an_older_generation_that_acts,
    an_answer_with_a_later_deadline_than_the_session,
    a_file_reserved_twice,
    a_released_path_that_stays_reserved,
    an_offer_that_outlasts_its_lease,
]


@pytest.mark.parametrize("plant", PRODUCT_BUGS)
def test_a_bug_planted_in_the_product_is_found_with_the_log_and_without_it(monkeypatch, plant):
    plant(monkeypatch)
    found = set()
    for seed in range(SEEDS):
        history = run(seed)
        found |= {"with the log"} if log_shows(history) else set()
        found |= {"without it"} if answers_show(history) else set()
        if len(found) == 2:
            return
    raise AssertionError(f"found only {found} in {SEEDS} runs")


def test_nothing_is_found_when_nothing_is_broken():
    require(check(run(1)), "searched")


def log_shows(history):
    try:
        check_log_order(history)
    except Violation:
        return True
    return False


def answers_show(history):
    """Whether some answers have no order; a search that gave up shows nothing, and the next seed is tried."""
    try:
        searched = (has_order(calls, max_steps=20_000, short_searches=3) for calls in history.groups().values())
        return not all(searched)
    except TooHard:
        return False
