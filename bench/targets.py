"""What the measurements must show: each line compares a figure with another of the same run, or with a fixed value."""

from __future__ import annotations

import math

import msgspec

from bench.figures import OLDER, Figures

AT_MOST, AT_LEAST = "≤", "≥"


class Target(msgspec.Struct, frozen=True):
    """One line: the figure divided by its base, and the limit of the ratio. Without a base the figure itself."""

    what: str
    figure: str
    relation: str
    limit: float
    base: str = ""
    unit: str = "ratio"

    def value(self, figures: Figures) -> float:
        """The ratio, or the figure; NaN if one of them was not measured."""
        return figures.ratio(self.figure, self.base) if self.base else figures.median(self.figure)

    def is_met(self, figures: Figures) -> bool | None:
        """None if it was not measured."""
        value = self.value(figures)
        if math.isnan(value):
            return None
        return value <= self.limit if self.relation == AT_MOST else value >= self.limit


def _against(what: str, figure: str, relation: str, limit: float) -> Target:
    return Target(f"{what}, of the older commit's", figure, relation, limit, OLDER + figure)


_ECHO = "sqlite.echo.bare.128"

TARGETS = (
    _against("claim, CPU, 128 connections", "sqlite.claim.128.cpu", AT_MOST, 0.55),
    _against("heartbeat, CPU, 128 connections", "sqlite.heartbeat.128.cpu", AT_MOST, 0.55),
    _against("claim, CPU, 1 connection, one process", "sqlite.single.claim.1.cpu", AT_MOST, 0.45),
    _against("heartbeat, CPU, 1 connection, one process", "sqlite.single.heartbeat.1.cpu", AT_MOST, 0.45),
    Target("aim: claim, CPU, 128 connections, of bare uvicorn's echo", "sqlite.claim.128.cpu", AT_MOST, 2.6,
           f"{_ECHO}.cpu"),
    Target("claims/s of an account with limits, of one without", "sqlite.limited.128.rate", AT_LEAST, 0.85,
           "sqlite.unlimited.128.rate"),
    _against("job cycles/s, 1 connection", "sqlite.jobs.1.cycles", AT_LEAST, 2.2),
    _against("job cycles/s, 32 connections", "sqlite.jobs.32.cycles", AT_LEAST, 1.8),
    _against("job cycles/s, 128 connections", "sqlite.jobs.128.cycles", AT_LEAST, 1.8),
    _against("lock cycles/s, 1 connection", "sqlite.locks.1.cycles", AT_LEAST, 2.2),
    _against("lock cycles/s, 32 connections", "sqlite.locks.32.cycles", AT_LEAST, 1.8),
    _against("lock cycles/s, 128 connections", "sqlite.locks.128.cycles", AT_LEAST, 1.8),
    Target("tasks, engine on SQLite, of a plain loop", "sqlite.engine.tasks.rate", AT_LEAST, 4, "sqlite.loop.rate"),
    Target("tasks, engine on PostgreSQL, of a plain loop", "postgres.engine.tasks.rate", AT_LEAST, 1.5,
           "postgres.loop.rate"),
    Target("tasks in hundreds on PostgreSQL, of a plain loop", "postgres.hundreds.rate", AT_LEAST, 2.5,
           "postgres.loop.rate"),
    Target("task requests/s, one by one, of our echo's, SQLite", "sqlite.task.rate", AT_LEAST, 0.35,
           "sqlite.echo.holdfast.128.rate"),
    Target("task requests/s, one by one, of our echo's, PostgreSQL", "postgres.task.rate", AT_LEAST, 0.35,
           "postgres.echo.holdfast.128.rate"),
    Target("idle pick-up, of two flushes and 1.5 ms", "sqlite.pickup.p50", AT_MOST, 1, "sqlite.pickup.allowed"),
    Target("claim of a task by 16 workers, p99 of its median", "sqlite.workers.claim.p99", AT_MOST, 3,
           "sqlite.workers.claim.p50"),
    Target("claim with 1,000 stream readers, p99 of that without", "streams.readers.p99", AT_MOST, 2,
           "streams.alone.p99"),
    *(
        target
        for store, shown in (("sqlite", "SQLite"), ("postgres", "PostgreSQL"))
        for target in (
            Target(f"reserve and release a path, full space, CPU of that in an empty one, {shown}",
                   f"{store}.reserve.full.cpu", AT_MOST, 3, f"{store}.reserve.empty.cpu"),
            Target(f"hand-off of files on one server, slowest, {shown}", f"{store}.handoff.one.max", AT_MOST, 0.1,
                   unit="ms"),
            Target(f"hand-off of files across two servers, slowest, {shown}", f"{store}.handoff.two.max", AT_MOST, 0.3,
                   unit="ms"),
        )
    ),
    Target("most expensive request for files, CPU of its patterns", "reserve.worst", AT_MOST, 0.05, unit="ms"),
    Target("start to first answer, new store", "sqlite.start.new", AT_MOST, 0.5, unit="s"),
    Target("memory of an idle process", "sqlite.idle.memory", AT_MOST, 60e6, unit="bytes"),
    Target("CPU of an idle server, of one core", "sqlite.idle.cpu", AT_MOST, 0.003, unit="cores"),
)  # fmt: skip

GROWTH_LIMIT = 1.3
"""What a request may cost with the most rows, of what it costs with the fewest (`bench.growth`)."""
