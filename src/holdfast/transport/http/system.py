"""How the server is: for probes, people and OctoStore's uptime checks."""

from __future__ import annotations

from typing import Any

from holdfast import __version__
from holdfast.core import contract as contracts
from holdfast.core.errors import HoldfastError
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.row import SECOND, Instant
from holdfast.operations import OPERATIONS
from holdfast.telemetry import names
from holdfast.transport.http.door import Door
from holdfast.transport.http.message import Request, Response, json_response
from holdfast.transport.http.stats import totals
from holdfast.transport.times import milliseconds_or_none


async def index(door: Door, request: Request) -> Response:  # noqa: ARG001 - every handler has this shape
    """Every operation, for whoever knows only the address."""
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
    return json_response(200, document | {"agent_contract": contracts.welcome()})


async def health(door: Door, request: Request) -> Response:  # noqa: ARG001 - every handler has this shape
    """Always ok: it says that the process answers. `/readyz` tells the truth about the store."""
    try:
        size = await door.read(lambda _: door.engine.store.size())
    except HoldfastError:
        size = 0
    sweep = door.engine.sweep
    try:
        now = await door.read(lambda reader: reader.now)
    except HoldfastError:
        now = None
    return json_response(
        200,
        {
            "db_size_bytes": size,
            "status": "ok",
            "storage": "wal",
            "leaseExpiryJob": _job(sweep.swept_at, now, 90),
            "retentionCleanupJob": _job(sweep.tidying.tidied_at, now, 120),
        },
    )


def _job(last: Instant | None, now: Instant | None, stale_after: int) -> dict[str, Any]:
    """When something that runs by itself last ran, and whether that is lately enough."""
    stale = None if last is None or now is None else max(now - last, 0) // SECOND
    return {
        "lastRunAt": milliseconds_or_none(last),
        "staleSec": stale,
        "healthy": stale is None or stale <= stale_after,
    }


async def status(door: Door, request: Request) -> Response:  # noqa: ARG001 - every handler has this shape
    """What the server has done so far."""
    counts = await door.read(lambda reader: reader.counts(DEFAULT_ACCOUNT))
    door.engine.alerts.sample(door.engine.board)
    cells = door.engine.board.read()
    _, acquires, releases = totals(cells)
    return json_response(
        200,
        {
            "active_locks": counts.live_leases,
            "agent_contract": contracts.lock_list(),
            "alerts": _alerts(door, cells),
            "status": "ok",
            "total_acquires": acquires,
            "total_releases": releases,
            "total_users": counts.principals,
            "uptime_seconds": door.stats.uptime(),
        },
    )


def _alerts(door: Door, cells: list[float]) -> dict[str, dict[str, int | bool]]:
    """What should be rare, in all workers of this server."""
    found: dict[str, dict[str, int | bool]] = {}
    for kind in names.RARE:
        recent = int(cells[names.RARE_RECENT.at(kind)])
        total = int(cells[names.RARE_TOTAL.at(kind)])
        found[kind] = {"total": total, "last_hour": recent, "alert": door.engine.alerts.judge(kind, recent)}
    return found


async def healthz(door: Door, request: Request) -> Response:  # noqa: ARG001 - every handler has this shape
    """The process is alive."""
    return json_response(200, {"status": "ok"})


async def readyz(door: Door, request: Request) -> Response:  # noqa: ARG001 - every handler has this shape
    """The store can be read and, if a write failed lately, written again."""
    try:
        ready = await door.read(lambda reader: reader.next_token() > 0 and door.engine.is_ready())
    except HoldfastError as error:
        return json_response(503, {"status": "unavailable", "reason": error.code}, ((b"retry-after", b"1"),))
    if not ready:
        return json_response(503, {"status": "unavailable", "reason": "a thread of this server has died"})
    return json_response(200, {"status": "ready", "store": door.engine.store.name})


async def version(door: Door, request: Request) -> Response:  # noqa: ARG001 - every handler has this shape
    """Which Holdfast this is."""
    return json_response(200, {"name": "holdfast", "version": __version__})
