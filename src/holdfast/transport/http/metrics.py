"""How busy this process is: OctoStore's JSON for its clients, Prometheus' text for scrapers."""

from __future__ import annotations

import os
import platform
import resource
import sys
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.core import contract as contracts
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.task import STATES
from holdfast.store.contract import Totals
from holdfast.transport.http import exposition
from holdfast.transport.http.door import Door
from holdfast.transport.http.exposition import COUNTER, GAUGE, HISTOGRAM, INFO, Family, Sample
from holdfast.transport.http.message import Request, Response, json_response
from holdfast.transport.http.query import NO_STORE
from holdfast.transport.http.stats import BOUNDS, OCTOSTORE_KINDS, Stats, Tally

JSON, TEXT, OPENMETRICS = "application/json", "text/plain", "application/openmetrics-text"
_VARY = (b"vary", b"accept")


async def metrics(door: Door, request: Request) -> Response:
    """JSON, unless the caller would rather have text."""
    await door.authenticate_operator(request)
    accepted = request.headers.get(b"accept", b"").decode("latin-1")
    if max(preference(accepted, TEXT), preference(accepted, OPENMETRICS)) > preference(accepted, JSON):
        return await _text(door, accepted)
    counts = await door.read(lambda reader: reader.counts(DEFAULT_ACCOUNT))
    stats, uptime = door.stats, door.stats.uptime()
    total = stats.total()
    return json_response(
        200,
        {
            "active_locks": counts.live_leases,
            "agent_contract": contracts.operated(),
            "endpoints": {kind: _endpoint(stats.tallies[kind]) for kind in OCTOSTORE_KINDS},
            "lock_store": {
                "cache_hits": 0,
                "cache_misses": 0,
                "total_acquires": stats.acquires,
                "total_expirations": 0,
                "total_releases": stats.releases,
            },
            "memory_bytes": memory_bytes(),
            "requests_per_second": total / uptime if uptime else 0.0,
            "total_requests": total,
            "total_users": counts.principals,
            "uptime_seconds": uptime,
        },
        (_VARY, *NO_STORE),
    )


async def prometheus(door: Door, request: Request) -> Response:
    """Always text, for scrapers that cannot say what they like."""
    await door.authenticate_operator(request)
    return await _text(door, request.headers.get(b"accept", b"").decode("latin-1"))


async def _text(door: Door, accepted: str) -> Response:
    totals = await door.read(lambda reader: reader.totals())
    openmetrics = preference(accepted, OPENMETRICS) > preference(accepted, TEXT)
    body = exposition.render([*_of_requests(door.stats), *_of_work(door, totals)], openmetrics=openmetrics)
    kind = exposition.OPENMETRICS if openmetrics else exposition.PLAIN
    return Response(200, body, (_VARY, *NO_STORE), kind)


def preference(accepted: str, kind: str) -> float:
    """How much an Accept header likes a media type, from 0 to 1; the most precise word about it counts."""
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


def _endpoint(tally: Tally) -> dict[str, Any]:
    count = tally.count
    return {
        "avg_ms": f"{tally.seconds * 1000 / count if count else 0:.1f}",
        "count": count,
        "errors": tally.errors,
        "max_ms": int(tally.longest * 1000),
        "min_ms": int(tally.shortest * 1000) if count else 0,
        "p50_ms": f"{tally.percentile(0.5) * 1000:.1f}",
        "p95_ms": f"{tally.percentile(0.95) * 1000:.1f}",
        "p99_ms": f"{tally.percentile(0.99) * 1000:.1f}",
    }


def _of_requests(stats: Stats) -> list[Family]:
    seen = {kind: tally for kind, tally in stats.tallies.items() if tally.count}
    requests = tuple(
        Sample(count, {"class": kind, "status": f"{digit}xx"})
        for kind, tally in seen.items()
        for digit, count in enumerate(tally.statuses)
        if count
    )
    times = tuple(
        sample
        for kind, tally in seen.items()
        for sample in exposition.histogram(BOUNDS, tally.buckets, tally.seconds, {"class": kind})
    )
    return [
        Family("holdfast_requests", COUNTER, "Requests answered.", requests),
        Family("holdfast_request_duration_seconds", HISTOGRAM, "From a request's head to its answer's.", times),
    ]


def _of_work(door: Door, totals: Totals) -> list[Family]:
    batches, commands = door.engine.batches()
    waiting = tuple(Sample(many, {"for": what}) for what, many in door.engine.waiting().items())
    tasks = tuple(Sample(totals.tasks.get(state, 0), {"state": state}) for state in STATES)
    build = Sample(1, {"version": __version__, "python": platform.python_version(), "store": door.engine.store.name})

    def one(name: str, kind: str, text: str, value: float) -> Family:
        return Family(f"holdfast_{name}", kind, text, (Sample(value),))

    return [
        one("lock_acquires", COUNTER, "Locks and leaderships granted or kept.", door.stats.acquires),
        one("lock_releases", COUNTER, "Locks released and leaderships resigned.", door.stats.releases),
        one("batches", COUNTER, "Transactions that carried commands.", batches),
        one("commands", COUNTER, "Commands in those transactions.", commands),
        one("live_leases", GAUGE, "Names that somebody holds, in all accounts.", totals.live_leases),
        Family("holdfast_tasks", GAUGE, "Tasks by state, in all accounts.", tasks),
        Family("holdfast_waiters", GAUGE, "Callers that wait here for a name, for work or for a change.", waiting),
        one("memory_bytes", GAUGE, "Memory of this process that is in RAM.", memory_bytes()),
        one("uptime_seconds", GAUGE, "How long this process has run.", door.stats.uptime()),
        Family("holdfast_build", INFO, "Which Holdfast this is.", (build,)),
    ]


def memory_bytes() -> int:
    """What this process has in RAM; where the system does not tell that, the most it ever had."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
