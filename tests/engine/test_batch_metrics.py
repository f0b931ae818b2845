"""Metrics of batches: each counter changes when its event happens, on every store; expiry is not takeover."""

from __future__ import annotations

import time

import pytest

from holdfast.core.errors import HoldfastError
from holdfast.core.row import SECOND
from holdfast.core.task import DEAD_CAUSES
from holdfast.engine.command import Held
from holdfast.telemetry import metric_names
from tests.support import acquire, claim, heartbeat, release, wait_until
from tests.task_commands import approval, complete, create, fail, take

SHORT = SECOND // 5


class Numbers:
    """Increments of metrics since the last call."""

    def __init__(self, engine):
        self.registry, self.before = engine.registry, engine.registry.read()

    def more(self, metric, *labels):
        place = metric.at(*labels)
        return self.registry.read()[place] - self.before[place]

    def late(self, family):
        """(how many leases were ended after their deadline, the sum of the delays)."""
        place = metric_names.LATENESS.at(family)
        cells = [after - before for after, before in zip(self.registry.read(), self.before, strict=True)]
        *buckets, total = cells[place : place + metric_names.LATENESS.width]
        return sum(buckets), total


@pytest.fixture
def numbers(engine):
    return Numbers(engine)


def test_claims_are_counted_by_outcome(engine, numbers):
    engine.call(claim("a", "l1"))
    engine.call(claim("a", "l2"))
    engine.call(acquire("b"))
    engine.call(take("nothing-of-this-type"))
    assert numbers.more(metric_names.CLAIMS, "job", "granted") == 1
    assert numbers.more(metric_names.CLAIMS, "job", "held") == 1
    assert numbers.more(metric_names.CONTENDED, "job") == 1
    assert numbers.more(metric_names.CLAIMS, "lock", "granted") == 1
    assert numbers.more(metric_names.CLAIMS, "task", "empty") == 1
    assert numbers.more(metric_names.CLAIMS, "task", "granted") == 0


def test_a_waiting_claim_is_counted_as_contended_once_and_answered_once(engine, numbers):
    engine.call(claim("a", "l1"))
    engine.call(claim("a", "l2"), wait_seconds=0.05)
    assert numbers.more(metric_names.CONTENDED, "job") == 1
    assert numbers.more(metric_names.CLAIMS, "job", "held") == 1


def test_renewals_and_releases_are_counted_and_refused_ones_are_not(engine, numbers):
    engine.call(claim("a", "l1"))
    engine.call(heartbeat("a", "l1"))
    with pytest.raises(HoldfastError):
        engine.call(heartbeat("a", "not mine"))
    engine.call(release("a", "l1"))
    assert (numbers.more(metric_names.RENEWALS, "job"), numbers.more(metric_names.RELEASES, "job", "released")) == (
        1,
        1,
    )


def test_an_expired_lease_counts_as_an_expiry_and_the_next_claim_as_a_takeover(engine, numbers):
    engine.call(claim("a", "l1", ttl=SHORT))
    wait_until(lambda: numbers.more(metric_names.EXPIRIES, "job") == 1)
    assert numbers.more(metric_names.TAKEOVERS, "job") == 0, "not taken over yet"
    count, seconds = numbers.late("job")
    assert count == 1
    assert 0 <= seconds < 5
    engine.call(claim("a", "l2"))
    assert (numbers.more(metric_names.TAKEOVERS, "job"), numbers.more(metric_names.EXPIRIES, "job")) == (1, 1)
    engine.call(release("a", "l2"))
    engine.call(claim("a", "l3"))
    assert numbers.more(metric_names.TAKEOVERS, "job") == 1, "what was given back is not taken over"


def test_every_transition_of_a_task_is_counted(engine, numbers):
    earlier = engine.alerts.report()
    for name in ("t1", "t2", "t3", "t4"):
        engine.call(create(name, max_attempts=1, lease_duration=SHORT if name == "t4" else 60 * SECOND))
        engine.call(take("work", seed=name))
    engine.call(complete("t1", seed="t1"))
    engine.call(fail("t2", seed="t2"))
    engine.call(fail("t3", seed="t3", permanent=True))
    wait_until(lambda: numbers.more(metric_names.EXPIRIES, "task") == 1)
    soon = time.time_ns() // 1000 + SHORT
    engine.call(create("t5", deadline_at=soon))
    engine.call(create("t6", approval=approval(deadline_at=soon)))
    wait_until(lambda: sum(numbers.more(metric_names.DEAD_LETTERS, cause) for cause in DEAD_CAUSES) == 5)
    assert (numbers.more(metric_names.CREATED), numbers.more(metric_names.CLAIMS, "task", "granted")) == (6, 4)
    assert (numbers.more(metric_names.COMPLETED), numbers.more(metric_names.FAILED)) == (1, 2)
    for cause in DEAD_CAUSES:
        assert numbers.more(metric_names.DEAD_LETTERS, cause) == 1, cause
    report = engine.alerts.report()
    assert report["dead_letters"]["total"] - earlier["dead_letters"]["total"] == 5
    assert report["lapses"]["total"] - earlier["lapses"]["total"] == 1


def test_a_batch_that_cannot_be_counted_is_answered(engine, monkeypatch, caplog):
    monkeypatch.delitem(metric_names.CLAIMS._offsets, ("job", "held"))
    engine.call(claim("a", "l1"))
    assert isinstance(engine.call(claim("a", "l2")), Held)
    assert "a batch could not be counted" in caplog.text


def test_batches_and_lane_busy_time_are_measured(engine, numbers):
    engine.call(claim("a", "l1"))
    batches = numbers.more(metric_names.BATCHES)
    assert 1 <= batches <= numbers.more(metric_names.COMMANDS)
    for phase in metric_names.PHASES:
        place = metric_names.PHASE_SECONDS.at(phase)
        cells = engine.registry.read()[place : place + metric_names.PHASE_SECONDS.width]
        assert sum(cells[:-1]) >= batches, phase
    wait_until(lambda: numbers.more(metric_names.LANE_BUSY) > 0)
    engine.sample()
    assert engine.registry.read()[metric_names.LANES.at()] == engine.store.lanes


def test_the_sweep_reports_when_it_last_ran(engine):
    wait_until(lambda: engine.registry.read()[metric_names.LOOP_SUCCESS.at("sweep")] > 0)
    assert engine.loop_report()["sweep"].stuck is False
    assert engine.loop_report()["lanes"].stuck is False
