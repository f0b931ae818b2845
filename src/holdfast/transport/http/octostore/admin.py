"""OctoStore's `/admin` pages: who holds what, who has a key, how busy it was. For whoever runs this server."""

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

SHOWN = 10_000
"""Locks and users on one page; the page that OctoStore ships takes no more."""
WINDOWS = {"1h": 3_600, "12h": 43_200, "24h": 86_400, "7d": 604_800}


async def admin_status(ctx: HandlerContext, request: Request) -> Response:
    """Everything that is held in the account of this server, and everybody with a key to it."""
    await ctx.authenticate_operator(request)
    leases, people, now = await ctx.read(_look)
    names = {person.id: person.name for person in people} | {ADMIN_ID: "admin"}
    users = [person for person in people if person.revoked_at is None][:SHOWN]
    return json_response(
        200,
        {
            "active_locks": len(leases[:SHOWN]),
            "agent_contract": lock_advice.listed(),
            "healthy": True,
            "locks": [_lock(lease, names, now) for lease in leases[:SHOWN]],
            "total_acquires": ctx.stats.acquires,
            "total_releases": ctx.stats.releases,
            "total_users": len(users),
            "truncated": len(leases) > SHOWN,
            "uptime_seconds": ctx.stats.uptime(),
            "users": [_user(person) for person in users],
        },
        NO_STORE,
    )


def _look(reader: Reader) -> tuple[list[Lease], list[Principal], Instant]:
    return reader.leases(DEFAULT_ACCOUNT, "", "", SHOWN + 1), reader.principals(DEFAULT_ACCOUNT), reader.now


def _lock(lease: Lease, names: dict[str, str], now: Instant) -> dict[str, Any]:
    assert lease.expires_at is not None
    election = lease.kind == ELECTION
    return {
        "expires_at": rfc3339_offset(lease.expires_at),
        "fencing_token": lease.token,
        "holder_username": _username(lease, names),
        "metadata": _candidacy(lease) if election else metadata_text(lease),
        "name": lease.id,
        "ttl_remaining_seconds": max(lease.expires_at - now, 0) // SECOND,
    }


def _candidacy(lease: Lease) -> str:
    """What a leader is known by, as the text that OctoStore shows in the place of metadata."""
    told = {"candidate_id": lease.owner}
    if lease.metadata is not None:
        told["metadata"] = metadata_text(lease)
    return encode(told).decode()


def _username(lease: Lease, names: dict[str, str]) -> str:
    """Whose key took it. A lock that lives with a session is the session's, a room is nobody's."""
    if lease.kind == ELECTION or (lease.kind == LOCK and lease.ephemeral):
        return "unknown"
    return names.get(lease.principal or "", "unknown")


def _user(person: Principal) -> dict[str, Any]:
    return {"created_at": rfc3339_offset(person.created_at), "github_username": person.name, "id": person.id}


async def metrics_history(ctx: HandlerContext, request: Request) -> Response:
    """One number a minute that is over, oldest first. Minutes without a request are left out."""
    await ctx.authenticate_operator(request)
    window = Query(request, ["window"]).values().get("window", "1h")
    if window not in WINDOWS:
        raise Invalid(f"window is one of {', '.join(WINDOWS)}")
    counts = await ctx.read(lambda reader: reader.counts(DEFAULT_ACCOUNT))
    minutes = ctx.stats.history(WINDOWS[window])
    if minutes:
        minutes[-1].live = counts.live_leases  # nobody counts them each minute: the newest one is as of now
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
