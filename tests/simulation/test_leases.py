"""Simulation of leases: one holder at a time, tokens only grow, only the newest holder acts, every worker is served.

A failure names its seed, which replays it.
"""

from __future__ import annotations

import pytest

from holdfast.core import lease as leases
from holdfast.core.lease import Lease
from holdfast.engine import expiry
from holdfast.engine.verbs import jobs
from holdfast.store.memory.store import MemoryTransaction
from tests.proof_size import FULL
from tests.simulation.lease_simulation import LeaseSimulation

SEEDS, PARTS = (20_000, 40) if FULL else (100, 4)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_seed_keeps_the_promises(part):
    seen = {}
    for seed in range(part, SEEDS, PARTS):
        simulation = LeaseSimulation(seed)
        try:
            simulation.run()
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}: {failure}") from failure
        for what, count in simulation.checker.counts.items():
            seen[what] = seen.get(what, 0) + count
    # Runs without faults prove nothing.
    assert set(seen) == {"granted", "acted", "lost", "evicted", "held"}
    assert min(seen.values()) > 10


def fails(seeds=40):
    """Whether the checker notices within a few seeds."""
    for seed in range(seeds):
        try:
            LeaseSimulation(seed).run()
        except AssertionError:
            return True
    return False


def test_the_checker_notices_a_missing_holder_check(monkeypatch):
    monkeypatch.setattr(leases, "check_holder", lambda lease, proof, now: None)
    monkeypatch.setattr(leases, "end", lenient_end)
    assert fails()


def lenient_end(lease, how, **more):
    return end(lease, how, **more) if lease.proof is not None else lease


end = leases.end


def test_the_checker_notices_a_deadline_that_is_one_microsecond_late(monkeypatch):
    monkeypatch.setattr(leases, "is_live", lambda lease, now: lease.expires_at is not None and lease.expires_at >= now)
    assert fails()


def test_the_checker_notices_a_lease_that_ends_early(monkeypatch):
    early = lambda lease, now: lease.expires_at is not None and lease.expires_at - 1 <= now
    monkeypatch.setattr(leases, "is_due", early)
    assert fails()


def test_the_checker_notices_a_second_holder(monkeypatch):
    monkeypatch.setattr(jobs.leases, "is_live", lambda lease, now: False)
    assert fails()


def test_the_checker_notices_a_reused_token(monkeypatch):
    monkeypatch.setattr(MemoryTransaction, "draw", lambda self, count: [1] * count)
    assert fails()


def test_the_checker_notices_a_name_that_is_never_freed(monkeypatch):
    monkeypatch.setattr(expiry.leases, "is_due", lambda lease, now: False)
    monkeypatch.setattr(jobs.leases, "is_live", lambda lease, now: isinstance(lease, Lease) and lease.proof is not None)
    assert fails()
