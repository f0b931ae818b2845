"""OctoStore's `/admin` routes for the operator: held locks, users, and request history."""

from __future__ import annotations

from typing import Any

from holdfast.core.errors import Invalid
from holdfast.core.lease import ELECTION, LOCK, Lease
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.principal import ADMIN_ID, Principal
from holdfast.core.row import SECOND, Instant
from holdfast.store.contract import Reader
from holdfast.transport.advice import locks as lock_advice
from holdfast.transport.advice.contract import server_metrics
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import metadata_text
from holdfast.transport.http.request import Request, Response, encode, json_response
from holdfast.transport.times import rfc3339_offset

MAX_ROWS = 10_000
"""Locks and users in one answer; OctoStore's own admin page accepts no more."""
WINDOWS = {"1h": 3_600, "12h": 43_200, "24h": 86_400, "7d": 604_800}


async def admin_status(ctx: HandlerContext, request: Request) -> Response:
    """Everything held in the default account, and all users with a key to it."""
    await ctx.authenticate_operator(request)
    leases, principals, now = await ctx.read(_read_state)
    names = {user.id: user.name for user in principals} | {ADMIN_ID: "admin"}
    users = [user for user in principals if user.revoked_at is None][:MAX_ROWS]
    return json_response(
        200,
        {
            "active_locks": len(leases[:MAX_ROWS]),
            "agent_contract": lock_advice.listed(),
            "healthy": True,
            "locks": [_lock_document(lease, names, now) for lease in leases[:MAX_ROWS]],
            "total_acquires": ctx.stats.acquires,
            "total_releases": ctx.stats.releases,
            "total_users": len(users),
            "truncated": len(leases) > MAX_ROWS,
            "uptime_seconds": ctx.stats.uptime(),
            "users": [_user_document(user) for user in users],
        },
        NO_STORE,
    )


def _read_state(reader: Reader) -> tuple[list[Lease], list[Principal], Instant]:
    return reader.leases(DEFAULT_ACCOUNT, "", "", MAX_ROWS + 1), reader.principals(DEFAULT_ACCOUNT), reader.now


def _lock_document(lease: Lease, names: dict[str, str], now: Instant) -> dict[str, Any]:
    assert lease.expires_at is not None
    election = lease.kind == ELECTION
    return {
        "expires_at": rfc3339_offset(lease.expires_at),
        "fencing_token": lease.token,
        "holder_username": _username(lease, names),
        "metadata": _leader_metadata(lease) if election else metadata_text(lease),
        "name": lease.id,
        "ttl_remaining_seconds": max(lease.expires_at - now, 0) // SECOND,
    }


def _leader_metadata(lease: Lease) -> str:
    """The leader of an election, as the JSON text that OctoStore shows as its metadata."""
    leader = {"candidate_id": lease.owner}
    if lease.metadata is not None:
        leader["metadata"] = metadata_text(lease)
    return encode(leader).decode()


def _username(lease: Lease, names: dict[str, str]) -> str:
    """The user whose key took the lock; unknown for locks bound to a session and for elections."""
    if lease.kind == ELECTION or (lease.kind == LOCK and lease.ephemeral):
        return "unknown"
    return names.get(lease.principal or "", "unknown")


def _user_document(user: Principal) -> dict[str, Any]:
    return {"created_at": rfc3339_offset(user.created_at), "github_username": user.name, "id": user.id}


async def metrics_history(ctx: HandlerContext, request: Request) -> Response:
    """Request counts by finished minute, oldest first. Minutes without a request are left out."""
    await ctx.authenticate_operator(request)
    window = Query(request, ["window"]).values().get("window", "1h")
    if window not in WINDOWS:
        raise Invalid(f"window must be one of {', '.join(WINDOWS)}")
    counts = await ctx.read(lambda reader: reader.counts(DEFAULT_ACCOUNT))
    minutes = ctx.stats.history(WINDOWS[window])
    if minutes:
        minutes[-1].live = counts.live_leases  # not recorded by minute: the newest minute gets the present number
    return json_response(
        200,
        {
            "acquire_rates": [minute.acquires for minute in minutes],
            "active_locks": [minute.live for minute in minutes],
            "agent_contract": server_metrics(),
            "release_rates": [minute.releases for minute in minutes],
            "request_volume": [minute.requests for minute in minutes],
            "timestamps": [minute.started for minute in minutes],
            "window": window,
        },
        NO_STORE,
    )
