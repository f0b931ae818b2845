"""Request statistics: kinds of paths, duration buckets, percentiles, history by minute."""

import time
from types import SimpleNamespace

import pytest

from holdfast.operations.table import OPERATIONS
from holdfast.transport.http.system import stats as stats_module
from holdfast.transport.http.system.stats import BOUNDS, KINDS, KindStats, Stats, kind_of

KIND_OF = {
    "/locks": "list",
    "/locks/a": "status",
    "/locks/acquire": "status",
    "/locks/a/acquire": "acquire",
    "/locks//release": "release",
    "/locks/a/renew": "renew",
    "/locks/a/acl": "status",
    "/locks/a/watch": "status",
    "/elections": "election",
    "/elections/some-room/campaign": "election",
    "/auth/register": "auth",
    "/sessions/x": "session",
    "/v1/sessions": "session",
    "/v1/jobs/a/b/claim": "job",
    "/v1/tasks/claim": "task",
    "/v1/events": "event",
    "/v1/keys/register": "account",
    "/v1/account": "account",
    "/v1/recover": "task",
    "/v1/what": "other",
    "/health": "other",
    "/": "other",
    "/lockss": "other",
    "": "other",
}


@pytest.mark.parametrize("path", KIND_OF)
def test_a_path_is_of_one_of_few_kinds(path):
    assert kind_of(path) == KIND_OF[path]


def test_every_operation_has_its_kind_and_no_caller_can_make_another():
    assert {kind_of(operation.path) for operation in OPERATIONS} <= set(KINDS)
    assert {kind_of(path) for path in ("/v1/what", "/locks/a/b/c", "/x/y", "//", "/v1/")} <= set(KINDS)


def requests_of(stats, kind):
    return KindStats.read(stats.registry.read(), kind)


def noted(*times, status=200):
    stats = Stats()
    operation = next(operation for operation in OPERATIONS if operation.name == "acquire_lock")
    for seconds in times:
        stats.note(operation, "/locks/x/acquire", status, time.perf_counter() - seconds)
    return requests_of(stats, "acquire")


def test_an_answer_is_in_the_bucket_of_its_time():
    tally = noted(0.0001, 0.0015, 0.03, 0.5, 100)
    assert tally.buckets == [1, 0, 1, 0, 0, 1, 0, 1, 0, 1]
    assert tally.count == 5
    assert tally.shortest == pytest.approx(0.0001, abs=0.0003)
    assert tally.longest == pytest.approx(100, abs=0.01)
    assert tally.seconds == pytest.approx(100.5316, abs=0.01)


def test_refusals_and_failures_are_errors():
    assert noted(0, 0, status=404).errors == 2
    assert noted(0, status=503).errors == 1
    assert noted(0, status=204).errors == 0


def test_percentiles_are_the_ends_of_buckets_and_never_infinite():
    tally = KindStats()
    assert tally.percentile(0.99) == 0.0
    tally.buckets[0], tally.buckets[3] = 90, 9
    assert (tally.percentile(0.5), tally.percentile(0.95)) == (BOUNDS[0], BOUNDS[3])
    tally.buckets[-1], tally.longest = 1, 61.5
    assert (tally.percentile(0.99), tally.percentile(1)) == (BOUNDS[3], 61.5)


def test_an_unknown_path_is_counted_by_its_first_segment():
    stats = Stats()
    stats.note(None, "/locks/a/acquire/more", 404, time.perf_counter())
    stats.note(None, "/nowhere", 404, time.perf_counter())
    assert requests_of(stats, "status").errors == 1
    assert requests_of(stats, "other").errors == 1
    assert stats.total() == 1, "what leads nowhere is no work"


class FakeClocks:
    """A wall clock and a monotonic clock that the test advances."""

    def __init__(self, monkeypatch):
        self.now, self.steady = 1_700_000_000.0, 50.0
        functions = {"time": lambda: self.now, "perf_counter": lambda: self.steady, "monotonic": lambda: self.steady}
        monkeypatch.setattr(stats_module, "time", SimpleNamespace(**functions))

    def advance(self, seconds):
        self.now += seconds
        self.steady += seconds


@pytest.fixture
def clocks(monkeypatch):
    return FakeClocks(monkeypatch)


def ask(stats, times=1, acquires=0):
    for _ in range(times):
        began = stats.begin()
        for _ in range(acquires):
            stats.acquired()
        stats.note(None, "/locks", 200, began)


def test_a_minute_is_reported_once_it_is_over_with_what_happened_in_it(clocks):
    stats = Stats()
    ask(stats, 3, acquires=1)
    assert stats.history(3_600) == []
    clocks.advance(60)
    ask(stats, 2)
    (first,) = stats.history(3_600)
    assert (first.started, first.requests, first.acquires) == (1_699_999_980, 3, 3)
    clocks.advance(3 * 60)
    first, second = stats.history(3_600)
    assert (second.started, second.requests, second.acquires) == (1_700_000_040, 2, 0), "quiet minutes are left out"
    clocks.advance(3_540)
    assert [minute.requests for minute in stats.history(3_600)] == [0]
    assert [minute.requests for minute in stats.history(86_400)] == [3, 2, 0]


def test_the_first_request_of_a_minute_belongs_to_it(clocks):
    stats = Stats()
    clocks.advance(3_600)
    ask(stats, 1, acquires=1)
    clocks.advance(60)
    quiet, busy = stats.history(7_200)
    assert (quiet.requests, quiet.acquires) == (0, 0)
    assert (busy.requests, busy.acquires) == (1, 1)


def test_minutes_stay_in_order_when_the_clock_is_set_back(clocks):
    stats = Stats()
    for seconds in (60, -3_600, 60):
        clocks.advance(60)
        ask(stats)
        clocks.now += seconds
    clocks.advance(60)
    started = [minute.started for minute in stats.history(86_400)]
    assert started == sorted(started)
    assert len(started) >= 3


def test_no_more_minutes_are_kept_than_a_week_has(clocks):
    stats = Stats()
    for _ in range(10_090):
        clocks.advance(60)
        ask(stats)
    assert len(stats.minutes) == 10_080
