"""OctoStore's `/admin` routes for the operator: held locks, users, and request history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.core.errors import Invalid
from holdfast.core.lease import ELECTION, LOCK, Lease
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.page import PAGE_BYTES, is_full
from holdfast.core.principal import ADMIN_ID, Principal, is_user
from holdfast.core.row import SECOND, Instant
from holdfast.store.contract import Reader
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import metadata_text
from holdfast.transport.http.request import Request, Response, encode, json_response
from holdfast.transport.times import rfc3339_offset

MAX_ROWS = 10_000
"""Locks and users in one answer; OctoStore's own admin page accepts no more."""
MAX_BYTES = PAGE_BYTES
"""About how many bytes of locks, and of users, one answer has."""
PAGE, READ_BYTES = 500, 1024 * 1024
"""Rows, and their bytes, that are read at once."""
TRUNCATED = (b"holdfast-truncated", b"true")
"""Header of an answer that does not list all locks."""
WINDOWS = {"1h": 3_600, "12h": 43_200, "24h": 86_400, "7d": 604_800}


async def admin_status(ctx: HandlerContext, request: Request) -> Response:
    """What is held in the default account, and the users with a key to it.

    OctoStore's clients accept no other fields: that there are more locks is said in a header.
    """
    await ctx.authenticate_operator(request)
    locks, users, truncated = await ctx.read_page(_read_state)
    return json_response(
        200,
        {
            "active_locks": len(locks),
            "healthy": True,
            "locks": locks,
            "total_acquires": ctx.stats.acquires,
            "total_releases": ctx.stats.releases,
            "total_users": len(users),
            "uptime_seconds": ctx.stats.uptime(),
            "users": users,
        },
        (TRUNCATED, *NO_STORE) if truncated else NO_STORE,
    )


def _read_state(reader: Reader) -> tuple[list[msgspec.Raw], list[msgspec.Raw], bool]:
    """Locks and users, rendered, and whether there are more locks. It runs in a thread and reads page by page."""
    locks, truncated = _take(_lock_document(lease, reader.now) for lease in _read_leases(reader))
    holders = {lock["holder_username"] for lock in locks}
    names = {ADMIN_ID: "admin"}
    users: list[bytes] = []
    size = 0
    for user in _read_principals(reader):
        if user.id in holders:
            names[user.id] = user.name
        if is_user(user) and len(users) < MAX_ROWS and size < MAX_BYTES:
            users.append(encode(_user_document(user)))
            size += len(users[-1])
    for lock in locks:
        lock["holder_username"] = names.get(lock["holder_username"], "unknown")
    return [msgspec.Raw(encode(lock)) for lock in locks], list(map(msgspec.Raw, users)), truncated


def _read_leases(reader: Reader) -> Iterator[Lease]:
    """Held leases of the default account by name."""
    page = reader.leases(DEFAULT_ACCOUNT, "", "", PAGE, READ_BYTES)
    yield from page
    while is_full(page, PAGE, READ_BYTES):
        page = reader.leases(DEFAULT_ACCOUNT, "", page[-1].id, PAGE, READ_BYTES)
        yield from page


def _read_principals(reader: Reader) -> Iterator[Principal]:
    """Principals of the default account by id, revoked ones included."""
    after = ""
    while True:
        page = reader.rows_after(Principal, DEFAULT_ACCOUNT, after, PAGE, READ_BYTES)
        yield from (row for row in page if row.account == DEFAULT_ACCOUNT)
        if not is_full(page, PAGE, READ_BYTES) or page[-1].account != DEFAULT_ACCOUNT:
            return
        after = page[-1].id


def _take(documents: Iterator[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool]:
    """The first documents that fit into one answer, and whether there are more."""
    found: list[dict[str, Any]] = []
    size = 0
    for document in documents:
        if len(found) == MAX_ROWS or size >= MAX_BYTES:
            return found, True
        found.append(document)
        size += len(encode(document))
    return found, False


def _lock_document(lease: Lease, now: Instant) -> dict[str, Any]:
    """A held lock, with the id of its holder instead of the name."""
    assert lease.expires_at is not None
    election = lease.kind == ELECTION
    return {
        "expires_at": rfc3339_offset(lease.expires_at),
        "fencing_token": lease.token,
        "holder_username": _user_id(lease),
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


def _user_id(lease: Lease) -> str | None:
    """The user whose key took the lock; unknown for locks bound to a session and for elections."""
    if lease.kind == ELECTION or (lease.kind == LOCK and lease.ephemeral):
        return None
    return lease.principal


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
            "release_rates": [minute.releases for minute in minutes],
            "request_volume": [minute.requests for minute in minutes],
            "timestamps": [minute.started for minute in minutes],
            "window": window,
        },
        NO_STORE,
    )
