"""Health, readiness and status of the server."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast import __version__
from holdfast.core.errors import HoldfastError, ServerOutdated
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.row import SECOND, Instant
from holdfast.operations.table import OPERATIONS
from holdfast.store.contract import Reader, UnusableStore
from holdfast.telemetry import metric_names
from holdfast.transport.advice import locks as lock_advice
from holdfast.transport.advice.contract import known_caller, new_caller
from holdfast.transport.http.access.network import has_credential
from holdfast.transport.http.bodies.query import NO_STORE
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response
from holdfast.transport.http.system.stats import totals
from holdfast.transport.times import milliseconds_or_none

STORE_SECONDS = 5.0
"""A store that does not answer for this long counts as unavailable."""


async def index(ctx: HandlerContext, request: Request) -> Response:
    """Every operation, for a caller that knows only the address."""
    table = [
        {
            "action": operation.name,
            "method": operation.method,
            "endpoint": operation.path,
            "description": operation.summary,
        }
        for operation in OPERATIONS
    ]
    document = {"name": "holdfast", "version": __version__, "operations": table}
    is_open = ctx.settings.is_registration_open
    advice = known_caller() if has_credential(request) else new_caller(can_register=is_open)
    return json_response(200, document | {"agent_contract": advice})


async def health(ctx: HandlerContext, request: Request) -> Response:
    """Always ok while the process answers; `/readyz` also checks the store."""
    sweep = ctx.engine.sweep
    try:
        size, now = await asyncio.wait_for(
            ctx.read(lambda reader: (ctx.engine.store.size(), reader.now)), STORE_SECONDS
        )
    except (HoldfastError, TimeoutError):
        size, now = 0, None
    return json_response(
        200,
        {
            "db_size_bytes": size,
            "status": "ok",
            "storage": "wal",
            "leaseExpiryJob": _background_job(sweep.swept_at, now, 90),
            "retentionCleanupJob": _background_job(sweep.cleanup.finished_at, now, 120),
        },
    )


def _background_job(last: Instant | None, now: Instant | None, stale_after: int) -> dict[str, Any]:
    """When a background job last ran, and whether that is recent enough."""
    stale = None if last is None or now is None else max(now - last, 0) // SECOND
    return {
        "lastRunAt": milliseconds_or_none(last),
        "staleSec": stale,
        "healthy": stale is None or stale <= stale_after,
    }


async def status(ctx: HandlerContext, request: Request) -> Response:
    """Counts since the server started."""
    counts = await ctx.read(lambda reader: reader.counts(DEFAULT_ACCOUNT))
    ctx.engine.alerts.sample(ctx.engine.registry)
    cells = ctx.engine.registry.read()
    _, acquires, releases = totals(cells)
    return json_response(
        200,
        {
            "active_locks": counts.live_leases,
            "agent_contract": lock_advice.listed(),
            "alerts": _alerts(ctx, cells),
            "status": "ok",
            "total_acquires": acquires,
            "total_releases": releases,
            "total_users": counts.users,
            "uptime_seconds": ctx.stats.uptime(),
        },
    )


def _alerts(ctx: HandlerContext, cells: list[float]) -> dict[str, dict[str, int | bool]]:
    """Counts of rare events in all workers, and whether they are above their alert thresholds."""
    found: dict[str, dict[str, int | bool]] = {}
    for kind in metric_names.ALERT_KINDS:
        recent = int(cells[metric_names.ALERTS_RECENT.at(kind)])
        total = int(cells[metric_names.ALERTS_TOTAL.at(kind)])
        found[kind] = {"total": total, "last_hour": recent, "alert": ctx.engine.alerts.is_alert(kind, recent)}
    return found


async def healthz(ctx: HandlerContext, request: Request) -> Response:
    """The process answers."""
    return json_response(200, {"status": "ok"})


async def readyz(ctx: HandlerContext, request: Request) -> Response:
    """Whether the store can be read and written, and whether all background loops run."""
    failure, message = None, None
    try:
        await asyncio.wait_for(ctx.read(lambda reader: _check_store(ctx, reader)), STORE_SECONDS)
    except ServerOutdated as error:
        failure, message = error.code, error.message
    except HoldfastError as error:
        failure = error.code
    except UnusableStore as error:
        failure, message = error.code, str(error)
    except TimeoutError:
        failure = "store_unavailable"
    heartbeats = ctx.engine.loop_report()
    parts: dict[str, Any] = {"store": {"ok": failure is None, "last_success_seconds_ago": None if failure else 0.0}}
    for name, heartbeat in heartbeats.items():
        ago = None if heartbeat.seconds_ago is None else round(heartbeat.seconds_ago, 3)
        parts[name] = {"ok": not heartbeat.stuck, "last_success_seconds_ago": ago}
    stuck = [name for name, heartbeat in heartbeats.items() if heartbeat.stuck]
    if failure is not None or stuck:
        reason = failure or f"stuck: {', '.join(stuck)}"
        document = {"status": "unavailable", "reason": reason, "message": message or reason, "parts": parts}
        return json_response(503, document, ((b"retry-after", b"1"), *NO_STORE))
    document = {"status": "ready", "store": ctx.engine.store.name, "parts": parts}
    damaged = ctx.engine.registry.read()[metric_names.DAMAGED_ROWS.at()]
    return json_response(200, document | ({"damaged_rows": int(damaged)} if damaged else {}), NO_STORE)


def _check_store(ctx: HandlerContext, reader: Reader) -> int:
    ctx.engine.check_writable()
    ctx.engine.store.check_durable()
    return reader.next_token()


async def version(ctx: HandlerContext, request: Request) -> Response:
    """The version of Holdfast."""
    return json_response(200, {"name": "holdfast", "version": __version__})
