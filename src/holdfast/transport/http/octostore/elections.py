"""OctoStore's `/elections`: elections that need no account."""

from __future__ import annotations

import base64
import binascii
import secrets
import uuid
from typing import Any

import msgspec

from holdfast.core import lease as leases
from holdfast.core.errors import Forbidden, Invalid
from holdfast.core.lease import Lease
from holdfast.core.names import DEFAULT_ACCOUNT, ELECTION_PREFIX, check_candidate, election_lease_name
from holdfast.core.row import SECOND, Instant
from holdfast.engine.command import LeaseOutcome
from holdfast.engine.verbs.elections import Campaign, Leading, RenewLeadership, Resign
from holdfast.operations.bounds import ELECTION_TTL
from holdfast.store.contract import Reader
from holdfast.transport.advice import elections as election_advice
from holdfast.transport.advice.contract import seconds_to_wait
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import U32, metadata_text, milliseconds_left, read_body
from holdfast.transport.http.octostore.errors import InvalidTtl
from holdfast.transport.http.octostore.locks import check_metadata
from holdfast.transport.http.request import Request, Response, json_response
from holdfast.transport.ids import ids
from holdfast.transport.times import rfc3339

TOKEN_BYTES, TOKEN_LENGTH = 32, 43


class CampaignBody(msgspec.Struct):
    """Body of campaign."""

    candidate_id: str
    ttl_seconds: U32 | None = None
    metadata: str | None = None


class LeaderBody(msgspec.Struct):
    """Body of renew_leadership and resign; resign checks the type of the TTL but does not use it."""

    leader_token: str
    ttl_seconds: U32 | None = None


def _new_election_id() -> str:
    """A random id that does not look like an option of a command line."""
    while (election_id := base64.urlsafe_b64encode(secrets.token_bytes(24)).decode()).startswith("-"):
        pass
    return election_id


async def create_election(ctx: HandlerContext, request: Request) -> Response:
    """Create an election id. Nothing is stored until a candidate leads."""
    check_enabled(ctx)
    ctx.network.count_election_request(request)
    election_id = _new_election_id()
    path = f"/elections/{election_id}"
    return json_response(
        201,
        {
            "election_id": election_id,
            "campaign_path": f"{path}/campaign",
            "status_path": path,
            "watch_path": f"{path}/watch",
            "agent_contract": election_advice.vacant(election_id),
        },
    )


async def campaign(ctx: HandlerContext, request: Request) -> Response:
    """Become the leader, or return the present one."""
    body = await read_body(ctx, request, CampaignBody)
    check_enabled(ctx)
    ctx.network.count_election_request(request)
    name = election_lease_name(request.parameter)
    check_candidate(body.candidate_id)
    if body.metadata is not None:
        check_metadata(body.metadata)
    ttl = _check_ttl(body.ttl_seconds)
    holder, lease_id = ids.uuid(), ids.uuid()
    outcome: Any = await ctx.run(
        Campaign(
            account=DEFAULT_ACCOUNT,
            cause=request.cause(),
            name=name,
            candidate=body.candidate_id,
            holder=holder,
            lease_id=lease_id,
            ttl=ttl,
            max_elections=ctx.settings.max_public_elections,
            metadata=None if body.metadata is None else msgspec.json.encode(body.metadata).decode(),
        )
    )
    if isinstance(outcome, Leading):
        ctx.stats.acquired()
        return json_response(200, _leader_document(outcome, leader_token(holder, lease_id), ttl))
    lease, now = outcome.lease, outcome.now
    return json_response(
        200,
        {
            "status": "follower",
            "election_id": request.parameter,
            "leader": leader(lease),
            "retry_after_ms": milliseconds_left(lease.expires_at, now),
            "agent_contract": election_advice.following(request.parameter, seconds_to_wait(lease.expires_at, now)),
        },
    )


async def renew_leadership(ctx: HandlerContext, request: Request) -> Response:
    """Set how long the leadership lasts from now."""
    body = await read_body(ctx, request, LeaderBody)
    check_enabled(ctx)
    name = election_lease_name(request.parameter)
    ttl = _check_ttl(body.ttl_seconds)
    holder, lease_id = read_leader_token(body.leader_token)
    command = RenewLeadership(
        account=DEFAULT_ACCOUNT, cause=request.cause(), name=name, holder=holder, lease_id=lease_id, ttl=ttl
    )
    return json_response(200, _leader_document(await ctx.run(command), body.leader_token, ttl))


async def resign(ctx: HandlerContext, request: Request) -> Response:
    """Stop leading."""
    body = await read_body(ctx, request, LeaderBody)
    check_enabled(ctx)
    name = election_lease_name(request.parameter)
    holder, lease_id = read_leader_token(body.leader_token)
    outcome: Any = await ctx.run(
        Resign(account=DEFAULT_ACCOUNT, cause=request.cause(), name=name, holder=holder, lease_id=lease_id)
    )
    ctx.stats.released()
    return json_response(
        200,
        {
            "election_id": request.parameter,
            "status": "vacant",
            "previous_term": outcome.lease.token,
            "agent_contract": election_advice.resigned(request.parameter),
        },
    )


async def get_election_status(ctx: HandlerContext, request: Request) -> Response:
    """The present leader, if there is one."""
    check_enabled(ctx)
    name, election_id = election_lease_name(request.parameter), request.parameter

    def query_leader(reader: Reader) -> tuple[Lease | None, Instant]:
        return reader.row(Lease, DEFAULT_ACCOUNT, name), reader.now

    lease, now = await ctx.read(query_leader)
    if lease is None or not leases.is_live(lease, now):
        return json_response(
            200,
            {
                "election_id": election_id,
                "status": "vacant",
                "retry_after_ms": 0,
                "agent_contract": election_advice.vacant(election_id),
            },
        )
    return json_response(
        200,
        {
            "election_id": election_id,
            "status": "leader",
            "leader": leader(lease),
            "retry_after_ms": milliseconds_left(lease.expires_at, now),
            "agent_contract": election_advice.following(election_id, seconds_to_wait(lease.expires_at, now)),
        },
    )


def leader_token(holder: str, lease_id: str) -> str:
    """The token of a leader: holder and lease id in 43 characters."""
    return base64.urlsafe_b64encode(bytes.fromhex((holder + lease_id).replace("-", ""))).decode().rstrip("=")


def read_leader_token(token: str) -> tuple[str, str]:
    """(holder, lease id) of a leader token."""
    try:
        raw = base64.b64decode(token + "=", altchars=b"-_", validate=True) if len(token) == TOKEN_LENGTH else b""
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != TOKEN_BYTES or base64.urlsafe_b64encode(raw).decode().rstrip("=") != token:
        raise Invalid("leader_token is malformed")
    return str(uuid.UUID(bytes=raw[:16])), str(uuid.UUID(bytes=raw[16:]))


def check_enabled(ctx: HandlerContext) -> None:
    """Refuse if the operator has disabled elections."""
    if not ctx.settings.public_elections:
        raise Forbidden("public elections are disabled on this server")


def _check_ttl(seconds: int | None) -> Instant:
    ttl = ELECTION_TTL.default if seconds is None else seconds
    if not ELECTION_TTL.allows(ttl):
        raise InvalidTtl(f"must be between {ELECTION_TTL.least} and {ELECTION_TTL.most} seconds")
    return ttl * SECOND


def leader(lease: Lease) -> dict[str, Any]:
    """The leader as every reader may see it."""
    document: dict[str, Any] = {"candidate_id": lease.owner}
    if lease.metadata is not None:
        document["metadata"] = metadata_text(lease)
    return document | {"term": lease.token, "expires_at": rfc3339(lease.expires_at or 0)}


def _leader_document(outcome: LeaseOutcome, token: str, ttl: Instant) -> dict[str, Any]:
    election_id = outcome.lease.id.removeprefix(ELECTION_PREFIX)
    return {
        "status": "leader",
        "election_id": election_id,
        "leader": leader(outcome.lease),
        "leader_token": token,
        "renew_after_ms": ttl // SECOND * 500,
        "agent_contract": election_advice.leading(election_id),
    }
