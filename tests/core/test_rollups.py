"""Roll-ups: events are counted once, merging is adding, percentiles stay in their bucket, types are limited."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.event import Event
from holdfast.core.rollups.event_counts import TaskPast, by_resolution, count_events, past_of, sample, unknown_tasks
from holdfast.core.rollups.histogram import bucket_of, bucket_range, merge_histograms, observe, percentile
from holdfast.core.rollups.intervals import RANGES, RESOLUTIONS
from holdfast.core.rollups.rollup import MAX_TYPES, Rollup, TaskCounts, limit_types, merge
from holdfast.core.row import SECOND
from tests.support import ACCOUNT, START

MINUTE = 60 * SECOND
durations = st.lists(st.integers(0, 40 * 86_400 * SECOND), min_size=1, max_size=60)


def an_event(kind, at=START, version=1, subject="task:t1", **data):
    return Event(ACCOUNT, subject, version, kind, at, "me", "req", json.dumps(data))


def counted(*events, pasts=None):
    minutes = {}
    count_events(events, {} if pasts is None else pasts, minutes)
    return minutes


@given(durations, st.sampled_from([0.5, 0.95]))
def test_a_percentile_is_in_the_bucket_of_the_true_one(found, fraction):
    histogram = {}
    for duration in found:
        observe(histogram, duration)
    true = sorted(found)[max(math.ceil(len(found) * fraction), 1) - 1]
    low, high = bucket_range(bucket_of(true))
    assert low <= percentile(histogram, fraction) <= high
    assert percentile({}, fraction) is None


@given(durations, durations)
def test_merging_histograms_is_observing_both(one, other):
    parts = ({}, {}, {})
    for part, found in zip(parts, (one, other, one + other), strict=True):
        for duration in found:
            observe(part, duration)
    assert merge_histograms(parts[0], parts[1]) == parts[2]


def test_a_task_is_counted_from_its_creation_to_its_end():
    minutes = counted(
        an_event("task.created", type="work", ready=True),
        an_event("task.claimed", START + 2 * SECOND, 2, ready=False, claimed_at=START + 2 * SECOND),
        an_event("task.renewed", START + 5 * SECOND, 3),
        an_event("task.completed", START + 32 * SECOND, 4, claimed_at=None),
    )
    counts = Rollup()
    for rollup in minutes.values():
        counts = merge(counts, rollup)
    assert counts.types == {
        "work": TaskCounts(
            created=1, claimed=1, completed=1, waits={bucket_of(2 * SECOND): 1}, runs={bucket_of(30 * SECOND): 1}
        )
    }


def test_a_scheduled_task_waits_since_its_time_and_a_retried_one_since_its_retry():
    due, claimed = START + 600 * SECOND, START + 610 * SECOND
    pasts = {}
    minutes = counted(
        an_event("task.created", type="work", scheduled_at=due),
        an_event("task.ready", due + 5 * SECOND, 2, ready=True),
        an_event("task.claimed", claimed, 3, ready=False, claimed_at=claimed),
        an_event("task.failed", claimed + SECOND, 4, claimed_at=None, scheduled_at=claimed + 60 * SECOND),
        pasts=pasts,
    )
    total = merge(*minutes.values()).types["work"]
    assert total.waits == {bucket_of(10 * SECOND): 1}
    assert (total.failed, total.runs) == (1, {bucket_of(SECOND): 1})
    assert pasts["task:t1"] == TaskPast("work", claimed + 60 * SECOND, None)


def test_a_dead_letter_counts_as_a_failed_or_an_expired_attempt_by_its_cause():
    for cause, expected in {"attempts_exhausted": (1, 0), "lease_expired": (0, 1), "deadline": (0, 0)}.items():
        (rollup,) = counted(an_event("task.dead_lettered", version=9, dead_cause=cause)).values()
        assert (rollup.other.dead, rollup.other.failed, rollup.other.expired) == (1, *expected), cause


def test_names_and_files_are_counted_without_elections_and_damage():
    minutes = counted(
        an_event("lease.claimed", subject="lease:deploy"),
        an_event("lease.claimed", subject="lease:__election/room"),
        an_event("reservation.reserved", subject="reservation:r1"),
        an_event("lease.expired", subject="lease:deploy"),
        an_event("log.damaged", subject="log:4"),
        Event(ACCOUNT, "task:t9", 1, "task.created", START, "", "", "{broken"),
    )
    (rollup,) = minutes.values()
    assert (rollup.claimed, rollup.expired, rollup.other.created) == (2, 1, 1)


def test_only_tasks_whose_earlier_events_are_not_here_are_looked_up():
    events = [
        an_event("task.created", subject="task:new"),
        an_event("task.renewed", version=5, subject="task:renewed"),
        an_event("task.completed", version=7, subject="task:old"),
        an_event("task.claimed", version=3, subject="task:known"),
    ]
    assert unknown_tasks(events, {"task:known": TaskPast()}) == {"task:old": 7}
    earlier = an_event("task.claimed", version=6, ready=False, claimed_at=START)
    assert past_of("work", [earlier]) == TaskPast("work", None, START)


counts = st.builds(
    TaskCounts,
    created=st.integers(0, 9),
    waits=st.dictionaries(st.integers(0, 95), st.integers(1, 9), max_size=3),
    pending=st.none() | st.integers(0, 9),
)
rollups = st.builds(
    Rollup,
    claimed=st.integers(0, 9),
    types=st.dictionaries(st.sampled_from([f"type-{number}" for number in range(40)]), counts, max_size=40),
    pending=st.none() | st.integers(0, 9),
)


@given(rollups, rollups)
def test_merging_loses_nothing_and_limits_the_types(one, other):
    merged = merge(one, other)
    assert len(merged.types) <= MAX_TYPES
    every = [*one.types.values(), *other.types.values()]
    parts = [*merged.types.values(), merged.other]
    assert sum(part.created for part in parts) == sum(part.created for part in every)
    assert sum(sum(part.waits.values()) for part in parts) == sum(sum(part.waits.values()) for part in every)
    assert merged.claimed == one.claimed + other.claimed
    assert merged == merge(other, one)


def test_the_busiest_types_are_counted_apart():
    types = {f"type-{number:02}": TaskCounts(created=number) for number in range(MAX_TYPES + 2)}
    limited = limit_types(Rollup(types=types))
    assert sorted(limited.types) == sorted(types)[2:]
    assert limited.other.created == 1


def test_at_one_moment_the_numbers_of_further_types_add_up():
    tasks = [(f"type-{number:02}", "pending", 2) for number in range(MAX_TYPES + 3)]
    found = sample([*tasks, ("type-00", "claimed", 1), ("old", "completed", 7)], {"type-00": 1}, (4, 5, 6))
    assert (found.pending, found.delayed, found.other.pending) == (2 * len(tasks), 1, 6)
    assert (found.held_names, found.held_files, found.held_tasks) == (4, 5, 6)
    assert found.types["type-00"] == TaskCounts(pending=2, delayed=1, running=1)


def test_every_minute_is_in_one_interval_of_each_length_while_that_is_kept():
    young, old = START - MINUTE, START - 5 * 3600 * SECOND
    found = by_resolution({young: Rollup(claimed=1), old: Rollup(claimed=2), START * 2: Rollup(claimed=4)}, START)
    totals = {each.length: 0 for each in RESOLUTIONS}
    for (length, start), rollup in found.items():
        assert start % length == 0
        assert start <= START, "nothing is counted ahead of the clock"
        totals[length] += rollup.claimed
    assert list(totals.values()) == [5, 7, 7]


def test_a_chart_never_needs_an_interval_that_is_not_kept():
    for each in RANGES:
        starts = each.starts(START)
        assert starts[-1] <= START < starts[-1] + each.step
        assert starts[0] >= each.resolution.kept_since(START)
        assert 30 <= len(starts) <= 150
    assert sum(each.keep // each.length + 1 for each in RESOLUTIONS) == 771
