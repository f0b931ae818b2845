"""The charts of an account over a range, made from its roll-ups."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from holdfast.core.rollups.histogram import percentile
from holdfast.core.rollups.intervals import DAY, HOUR, MINUTE, ChartRange
from holdfast.core.rollups.rollup import Rollup, TaskCounts, activity, all_counts, merge
from holdfast.core.row import SECOND, Instant
from holdfast.transport.dashboard.charts.lines import UNKNOWN, Line, LineChart, draw_lines

_UNITS = ((0.001, (4, 10, 20, 40, 100, 200, 400)), (1, (1, 2, 4, 10, 20, 40)), (60, (1, 2, 4, 10, 20, 40)),
          (3600, (1, 2, 4, 8, 12)), (86_400, (1, 2, 4, 10, 20, 40)))  # fmt: skip
SPANS = tuple(number * unit for unit, numbers in _UNITS for number in numbers)
"""Seconds: where axes of durations may end. Half of each is a round number too."""


class Point(msgspec.Struct, frozen=True):
    """What is known of one point of the charts."""

    rollup: Rollup
    """What happened in its time."""
    level: Rollup | None
    """The last roll-up up to then with numbers of a moment: they change only with events, so they still hold."""


class TypeRow(msgspec.Struct, frozen=True):
    """A task type over the whole range; `name` is empty for the types that are not counted apart."""

    name: str
    counts: TaskCounts
    times: tuple[str, str, str, str]
    """p50 and p95 of the waiting time, then of the run time."""


def points(stored: Sequence[tuple[Instant, Rollup]], shown: ChartRange, starts: range) -> list[Point]:
    """One point for each start, from the roll-ups of the range and the last one before it."""
    merged: dict[Instant, Rollup] = {}
    level: Rollup | None = None
    levels: dict[Instant, Rollup] = {}
    for start, rollup in stored:
        at = start // shown.step * shown.step
        merged[at] = merge(merged.get(at, Rollup()), rollup)
        if rollup.pending is not None:
            levels[at] = merge(levels.get(at, Rollup()), rollup)
            level = levels[at] if at < starts.start else level
    found = []
    for at in starts:
        level = levels.get(at, level)
        found.append(Point(merged.get(at, Rollup()), level))
    return found


def task_charts(found: Sequence[Point], times: Sequence[str], task_type: str | None, per: str) -> list[LineChart]:
    """The charts of all tasks, or of one type."""
    counts = [_counts(point.rollup, task_type) for point in found]

    def line(name: str, kind: str, number: Callable[[TaskCounts], float | None]) -> Line:
        return Line(name, kind, [number(each) for each in counts])

    def level(name: str, kind: str, field: str) -> Line:
        return Line(name, kind, [_level(point, task_type, field) for point in found])

    def span(name: str, kind: str, field: str, fraction: float) -> Line:
        spans = (percentile(getattr(each, field), fraction) for each in counts)
        return Line(name, kind, [None if each is None else each / SECOND for each in spans])

    return [
        draw_lines(
            ("depth", "Queue depth", f"Highest number of tasks per {per}"),
            [level("pending", "first", "pending"), level("of these not claimable yet", "second", "delayed"),
             level("running", "third", "running")], times, number_text,
        ),
        draw_lines(
            ("throughput", "Throughput", f"Tasks per {per}"),
            [line("created", "second", lambda each: each.created),
             line("completed", "first", lambda each: each.completed)], times, number_text,
        ),
        draw_lines(
            ("waiting", "Waiting time", "From the moment a task can be claimed until it is claimed"),
            [span("p50", "first", "waits", 0.5), span("p95", "third", "waits", 0.95)], times, span_text, round_up_span,
        ),
        draw_lines(
            ("running", "Run time", "From the claim until the attempt is completed or failed"),
            [span("p50", "first", "runs", 0.5), span("p95", "third", "runs", 0.95)], times, span_text, round_up_span,
        ),
        draw_lines(
            ("failures", "Failures", f"Attempts and dead letters per {per}"),
            [line("failed attempts", "third", lambda each: each.failed),
             line("expired attempts", "second", lambda each: each.expired),
             line("dead letters", "bad", lambda each: each.dead)], times, number_text,
        ),
    ]  # fmt: skip


def holder_charts(found: Sequence[Point], times: Sequence[str], per: str, may: dict[str, bool]) -> list[LineChart]:
    """The charts of what is held and what has expired, of the kinds that the key may see."""
    kinds = (("jobs and locks", "first", "held_names", "jobs"), ("files", "second", "held_files", "files"),
             ("tasks", "third", "held_tasks", "tasks"))  # fmt: skip
    held = [
        Line(name, kind, [None if point.level is None else getattr(point.level, field) for point in found])
        for name, kind, field, part in kinds
        if may[part]
    ]
    expired = [Line("jobs, locks and files", "bad", [point.rollup.expired for point in found])] if may["jobs"] else []
    if may["tasks"]:
        expired.append(Line("tasks", "third", [_counts(point.rollup, None).expired for point in found]))
    return [
        draw_lines(("holders", "Held", f"Highest number of held leases per {per}"), held, times, number_text),
        draw_lines(("expiries", "Expired leases", f"Leases per {per}"), expired, times, number_text),
    ]


def type_rows(found: Sequence[Point]) -> list[TypeRow]:
    """Every type of the range, the busiest first."""
    total = Rollup()
    for point in found:
        total = merge(total, point.rollup)
    ranked = sorted(total.types.items(), key=lambda item: (-activity(item[1]), item[0]))
    other = [("", total.other)] if activity(total.other) else []
    return [TypeRow(name, counts, _times(counts)) for name, counts in [*ranked, *other]]


def _times(counts: TaskCounts) -> tuple[str, str, str, str]:
    spans = [percentile(found, fraction) for found in (counts.waits, counts.runs) for fraction in (0.5, 0.95)]
    first, second, third, fourth = (UNKNOWN if span is None else span_text(span / SECOND) for span in spans)
    return first, second, third, fourth


def _counts(rollup: Rollup, task_type: str | None) -> TaskCounts:
    if task_type is None:
        return all_counts([*rollup.types.values(), rollup.other])
    return rollup.types.get(task_type, TaskCounts())


def _level(point: Point, task_type: str | None, field: str) -> float | None:
    """A number of a moment; a type that a roll-up does not have had no tasks then."""
    if point.level is None:
        return None
    if task_type is not None:
        return getattr(point.level.types.get(task_type, TaskCounts()), field) or 0
    found: int | None = getattr(point.level, "held_tasks" if field == "running" else field)
    return found


def number_text(number: float) -> str:
    """A count: 12, 1.5, 12,000."""
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"


def span_text(seconds: float) -> str:
    """A duration in its largest unit: 120 ms, 2.5 s, 4 min, 1.5 h, 3 d."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    span = seconds * SECOND
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if span >= size:
            return f"{span / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.1f}".removesuffix(".0") + " s"


def round_up_span(seconds: float) -> float:
    """The end of an axis of durations: a round number of its unit."""
    return next((span for span in SPANS if span >= seconds), SPANS[-1])


def time_texts(shown: ChartRange, starts: range) -> list[str]:
    """The label of each point, in UTC: with the day if the range is longer than a day."""
    form = "%H:%M" if shown.length < DAY else "%d %b %H:%M"
    return [time.strftime(form, time.gmtime(at // SECOND)) for at in starts]


def step_text(shown: ChartRange) -> str:
    """The time between two points, in words."""
    if shown.step == MINUTE:
        return "minute"
    return f"{shown.step // MINUTE} minutes" if shown.step < HOUR else f"{shown.step // HOUR} hours"
