"""The report as a Markdown page: it is printed, and kept in docs/explanation/speed.md."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from bench.figures import OLDER, Figures
from bench.requests import CONNECTIONS, VERBS
from bench.targets import AT_MOST, TARGETS, Target

STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "memory": "memory:"}
VERB_NAMES = {
    "echo.bare": "bare uvicorn, echo", "echo.holdfast": "our server, echo", "claim": "claim", "heartbeat": "heartbeat",
    "release": "release", "jobs": "job claim + release", "locks": "lock acquire + release",
}  # fmt: skip


def page(figures: Figures, older: str, rounds: int, seconds: float) -> str:
    """The whole page. `older` names the older commit, if there is one."""
    flush = f"One flush (fdatasync after 4 KiB) took {figures.median('flush') * 1000:.2f} ms"
    rule = f"Medians of {rounds} rounds of {seconds:g} s; every answer was flushed before it was sent"
    parts = [
        f"{machine()}. {flush}. {rule}.",
        *(requests_table(figures, store, older) for store in STORES if f"{store}.claim.128.cpu" in figures),
        other_table(figures, older),
        targets_table(figures),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def machine() -> str:
    """Date and machine of this run."""
    model = next(
        (line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")), platform.processor()
    )
    count = sum(line.startswith("processor") for line in _cpu_lines())
    return f"{time.strftime('%Y-%m-%d')}, {count} hardware threads ({model}), Python {platform.python_version()}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns are aligned, so that it can be read on a terminal as well."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return "| " + " | ".join([cells[0].ljust(widths[0]), *rest]) + " |"

    rule = "| " + " | ".join(["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]) + " |"
    return "\n".join([line(header), rule, *map(line, rows)])


def requests_table(figures: Figures, store: str, older: str) -> str:
    """Requests over HTTP: server CPU beside the echo's and the older commit's, requests per second, latency."""
    header = [f"{STORES[store]}, connections", "CPU µs", "of echo", "requests/s", "p50 ms", "p99 ms"]
    if older:
        header += [f"{older} CPU µs", "CPU ratio", "rate ratio"]
    rows = []
    for verb in ("echo.bare", "echo.holdfast", *VERBS):
        for count in CONNECTIONS:
            name = f"{store}.{verb}.{count}"
            if f"{name}.cpu" in figures:
                rows.append([f"{VERB_NAMES[verb]}, {count}", *_request_cells(figures, name, store, count, older)])
    for verb in ("claim", "heartbeat"):
        name = f"{store}.single.{verb}.1"
        if f"{name}.cpu" in figures:
            rows.append([f"{verb}, 1, one process", *_request_cells(figures, name, store, 1, older)])
    return table(header, rows)


def _request_cells(figures: Figures, name: str, store: str, count: int, older: str) -> list[str]:
    cells = [
        number(figures.median(f"{name}.cpu") * 1e6, 0),
        number(figures.ratio(f"{name}.cpu", f"{store}.echo.bare.{count}.cpu"), 1),
        number(figures.median(f"{name}.rate"), 0),
        number(figures.median(f"{name}.p50") * 1e3, 2),
        number(figures.median(f"{name}.p99") * 1e3, 2),
    ]
    if older:
        cells += [
            number(figures.median(f"{OLDER}{name}.cpu") * 1e6, 0),
            number(figures.ratio(f"{name}.cpu", f"{OLDER}{name}.cpu"), 2),
            number(figures.ratio(f"{name}.rate", f"{OLDER}{name}.rate"), 2),
        ]
    return cells


OTHERS: tuple[tuple[str, str, float, int, str], ...] = (
    *(
        line
        for store, shown in (("sqlite", "SQLite"), ("postgres", "PostgreSQL"))
        for line in (
            (f"{store}.task.rate", f"{shown}: task requests, one task each, 128 connections", 1, 0, "/s"),
            (f"{store}.task.cpu", f"{shown}: … server CPU per request", 1e6, 0, "µs"),
            (f"{store}.hundreds.rate", f"{shown}: tasks created, claimed, completed in hundreds", 1, 0, "/s"),
            (f"{store}.hundreds.cpu", f"{shown}: … server CPU per task", 1e6, 0, "µs"),
            (f"{store}.loop.rate", f"{shown}: a plain loop without Holdfast, one row per transaction", 1, 0, "/s"),
            (f"{store}.engine.tasks.rate", f"{shown}: engine alone, tasks, 64 callers", 1, 0, "/s"),
            (f"{store}.raw.rate", f"{shown}: plain one-row commits", 1, 0, "/s"),
            (f"{store}.engine.singly.rate", f"{shown}: engine alone, one claim per transaction", 1, 0, "/s"),
            (f"{store}.engine.claims.rate", f"{shown}: engine alone, claims, 64 callers", 1, 0, "/s"),
            (f"{store}.reserve.empty.cpu", f"{shown}: reserve or release a path, empty space: CPU", 1e6, 0, "µs"),
            (f"{store}.reserve.full.cpu", f"{shown}: reserve or release a path, full space: CPU", 1e6, 0, "µs"),
            (f"{store}.handoff.one.p50", f"{shown}: hand-off of files, one server, median", 1e3, 1, "ms"),
            (f"{store}.handoff.two.p50", f"{shown}: hand-off of files, two servers, median", 1e3, 1, "ms"),
        )
    ),
    ("reserve.worst", "most expensive request for files: CPU of its patterns", 1e3, 1, "ms"),
    ("sqlite.unlimited.128.cpu", "claim, 128 connections, account without limits: server CPU", 1e6, 0, "µs"),
    ("sqlite.limited.128.cpu", "claim, 128 connections, account with limits: server CPU", 1e6, 0, "µs"),
    ("sqlite.statements.1.cpu", "the SQL statements of a claim alone, executed without Holdfast: CPU", 1e6, 0, "µs"),
    ("sqlite.statements.64.cpu", "the same of 64 claims in one transaction, for each claim: CPU", 1e6, 0, "µs"),
    ("sqlite.embedded.1.rate", "holdfast.open: claims, 1 thread", 1, 0, "/s"),
    ("sqlite.embedded.1.cpu", "holdfast.open: … CPU per claim", 1e6, 0, "µs"),
    ("sqlite.embedded.16.rate", "holdfast.open: claims, 16 threads", 1, 0, "/s"),
    ("sqlite.embedded.16.cpu", "holdfast.open: … CPU per claim", 1e6, 0, "µs"),
    ("sqlite.pickup.p50", "idle pick-up, new task to waiting worker, median", 1e3, 2, "ms"),
    ("sqlite.pickup.flush", "idle pick-up: one flush at that time", 1e3, 2, "ms"),
    ("sqlite.workers.claim.p50", "claim of a task, 16 workers, p50", 1e3, 2, "ms"),
    ("sqlite.workers.claim.p99", "claim of a task, 16 workers, p99", 1e3, 2, "ms"),
    ("streams.alone.p99", "claim at 1,000 events/s without readers, p99", 1e3, 2, "ms"),
    ("streams.readers.p99", "claim at 1,000 events/s with 1,000 stream readers, p99", 1e3, 2, "ms"),
    ("sqlite.start.new", "start to first answer, new store", 1e3, 0, "ms"),
    ("sqlite.start.again", "start to first answer, existing store", 1e3, 0, "ms"),
    ("sqlite.idle.memory", "idle memory of the largest process", 1e-6, 0, "MB"),
    ("sqlite.idle.cpu", "idle CPU, of one core", 100, 2, "%"),
)
"""The other lines: figure, what it is, factor from its unit to the shown one, digits, shown unit."""


def other_table(figures: Figures, older: str) -> str:
    """Everything that is not a request over HTTP."""
    header = ["what", "", *([older, "ratio"] if older else [])]
    rows = []
    for name, what, factor, digits, unit in OTHERS:
        if name not in figures:
            continue
        cells = [what, f"{number(figures.median(name) * factor, digits)} {unit}"]
        if older:
            is_known = OLDER + name in figures
            cells += [f"{number(figures.median(OLDER + name) * factor, digits)} {unit}"] if is_known else [""]
            cells += [number(figures.ratio(name, OLDER + name), 2)] if is_known else [""]
        rows.append(cells)
    return table(header, rows) if rows else ""


def targets_table(figures: Figures) -> str:
    """The targets that were measured, met or MISSED."""
    rows = []
    for target in TARGETS:
        is_met = target.is_met(figures)
        if is_met is not None:
            limit = f"{'≤' if target.relation == AT_MOST else '≥'} {_shown(target, target.limit)}"
            rows.append([target.what, _shown(target, target.value(figures)), limit, "met" if is_met else "MISSED"])
    return table(["target", "measured", "limit", ""], rows) if rows else ""


def _shown(target: Target, value: float) -> str:
    shown = {
        "ratio": f"{value:.2f}",
        "s": f"{value:.2f} s",
        "ms": f"{value * 1e3:.0f} ms",
        "bytes": f"{value / 1e6:.0f} MB",
        "cores": f"{value:.2%}",
    }
    return shown[target.unit]


def number(value: float, digits: int) -> str:
    """With a comma between thousands; empty if it was not measured."""
    return "" if math.isnan(value) else f"{value:,.{digits}f}"
