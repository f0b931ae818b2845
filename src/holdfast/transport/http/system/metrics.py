"""Metrics of this server: OctoStore's JSON for its clients, Prometheus' text for scrapers."""

from __future__ import annotations

import platform
from typing import Any

from holdfast import __version__
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.row import SECOND
from holdfast.core.task import STATES
from holdfast.store.contract import Totals
from holdfast.telemetry import metric_names
from holdfast.telemetry.kinds import Histogram, Metric
from holdfast.transport.http.bodies.query import NO_STORE
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response
from holdfast.transport.http.system import exposition
from holdfast.transport.http.system.exposition import GAUGE, INFO, Family, Sample
from holdfast.transport.http.system.stats import OCTOSTORE_KINDS, KindStats, sample_process, totals

JSON, TEXT, OPENMETRICS = "application/json", "text/plain", "application/openmetrics-text"
_VARY = (b"vary", b"accept")

STORE_METRICS = {
    "live_leases": "Held names, in all accounts.",
    "tasks": "Tasks by state, in all accounts.",
    "oldest_ready_task_age_seconds": "Age of the oldest task that can be claimed; 0 if there is none.",
    "uptime_seconds": "Seconds since this server started.",
    "build": "Version of Holdfast, Python and store.",
}
"""Help texts of the metrics that are not in the registry but read from the store, or constant."""


async def metrics(ctx: HandlerContext, request: Request) -> Response:
    """JSON, unless the caller prefers text."""
    await ctx.authenticate_operator(request)
    accepted = request.headers.get(b"accept", b"").decode("latin-1")
    if max(preference(accepted, TEXT), preference(accepted, OPENMETRICS)) > preference(accepted, JSON):
        return await _render_text(ctx, accepted)
    counts = await ctx.read(lambda reader: reader.counts(DEFAULT_ACCOUNT))
    sample_process(ctx.engine)
    cells, uptime = ctx.engine.registry.read(), ctx.stats.uptime()
    total, acquires, releases = totals(cells)
    return json_response(
        200,
        {
            "active_locks": counts.live_leases,
            "endpoints": {kind: _endpoint_document(KindStats.read(cells, kind)) for kind in OCTOSTORE_KINDS},
            "lock_store": {
                "cache_hits": 0,
                "cache_misses": 0,
                "total_acquires": acquires,
                "total_expirations": 0,
                "total_releases": releases,
            },
            "memory_bytes": int(cells[metric_names.MEMORY.at()]),
            "requests_per_second": total / uptime if uptime else 0.0,
            "total_requests": total,
            "total_users": counts.users,
            "uptime_seconds": uptime,
        },
        (_VARY, *NO_STORE),
    )


async def prometheus(ctx: HandlerContext, request: Request) -> Response:
    """Always text, for scrapers that send no Accept header."""
    await ctx.authenticate_operator(request)
    return await _render_text(ctx, request.headers.get(b"accept", b"").decode("latin-1"))


async def _render_text(ctx: HandlerContext, accepted: str) -> Response:
    found = await ctx.read(lambda reader: reader.totals())
    openmetrics = preference(accepted, OPENMETRICS) > preference(accepted, TEXT)
    sample_process(ctx.engine)
    families = [*_registry_families(ctx.engine.registry.read()), *_store_families(ctx, found)]
    body = exposition.render(families, openmetrics=openmetrics)
    kind = exposition.OPENMETRICS if openmetrics else exposition.PLAIN
    return Response(200, body, (_VARY, *NO_STORE), kind)


def preference(accepted: str, kind: str) -> float:
    """The quality of a media type in an Accept header, 0 to 1; the most specific entry counts."""
    best = (-1, 0.0)
    for entry in accepted.lower().split(","):
        word, *parameters = (part.strip() for part in entry.split(";"))
        rank = {kind: 2, kind.partition("/")[0] + "/*": 1, "*/*": 0}.get(word)
        if rank is not None:
            quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
            best = max(best, (rank, _quality(quality)))
    return best[1]


def _quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0 <= quality <= 1 else 0.0


def _endpoint_document(stats: KindStats) -> dict[str, Any]:
    count = stats.count
    return {
        "avg_ms": f"{stats.seconds * 1000 / count if count else 0:.1f}",
        "count": count,
        "errors": stats.errors,
        "max_ms": int(stats.longest * 1000),
        "min_ms": int(stats.shortest * 1000) if count else 0,
        "p50_ms": f"{stats.percentile(0.5) * 1000:.1f}",
        "p95_ms": f"{stats.percentile(0.95) * 1000:.1f}",
        "p99_ms": f"{stats.percentile(0.99) * 1000:.1f}",
    }


def _registry_families(cells: list[float]) -> list[Family]:
    """Every public metric. A series with labels appears once it has a value, the others from the start."""
    return [_family(metric, cells) for metric in metric_names.METRICS.metrics if metric.exported]


def _family(metric: Metric, cells: list[float]) -> Family:
    samples: list[Sample] = []
    for labels, cell in metric.series():
        if isinstance(metric, Histogram):
            *buckets, total = cells[cell : cell + metric.width]
            if any(buckets) or not labels:
                samples += exposition.histogram(metric.bounds, map(int, buckets), total, labels)
        elif cells[cell] or not labels or metric.kind == GAUGE:
            samples.append(Sample(_whole(cells[cell]), labels))
    return Family(metric.name, metric.kind, metric.help, tuple(samples))


def _whole(value: float) -> float:
    return int(value) if value.is_integer() else value


def _store_families(ctx: HandlerContext, totals: Totals) -> list[Family]:
    tasks = tuple(Sample(totals.tasks.get(state, 0), {"state": state}) for state in STATES)
    build = Sample(1, {"version": __version__, "python": platform.python_version(), "store": ctx.engine.store.name})
    gauges = {"live_leases": totals.live_leases, "oldest_ready_task_age_seconds": totals.oldest_ready / SECOND,
            "uptime_seconds": ctx.stats.uptime()}  # fmt: skip
    return [
        *(Family(f"holdfast_{name}", GAUGE, STORE_METRICS[name], (Sample(value),)) for name, value in gauges.items()),
        Family("holdfast_tasks", GAUGE, STORE_METRICS["tasks"], tasks),
        Family("holdfast_build", INFO, STORE_METRICS["build"], (build,)),
    ]
