"""Schemas of OctoStore's `/elections`."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from holdfast.core import errors
from holdfast.operations.bounds import FIELDS
from holdfast.transport.http.octostore import elections
from holdfast.transport.http.octostore.errors import InvalidTtl
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import Milliseconds, OperationSchema, Time, Token, request_body
from holdfast.transport.http.streams import frames


class Leader(Struct):
    """The leader."""

    candidate_id: str
    term: Token
    expires_at: Time
    metadata: str | UnsetType = UNSET


class CreatedElection(Struct):
    """A new election and its paths."""

    election_id: str
    campaign_path: str
    status_path: str
    watch_path: str
    agent_contract: AgentContract


class Leadership(Struct):
    """The caller is the leader; `leader_token` is its proof."""

    status: Literal["leader"]
    election_id: str
    leader: Leader
    leader_token: str
    renew_after_ms: Milliseconds
    agent_contract: AgentContract


class Follower(Struct):
    """Another candidate is the leader."""

    status: Literal["follower"]
    election_id: str
    leader: Leader
    retry_after_ms: Milliseconds
    agent_contract: AgentContract


class LedElection(Struct):
    """The election has a leader."""

    status: Literal["leader"]
    election_id: str
    leader: Leader
    retry_after_ms: Milliseconds
    agent_contract: AgentContract


class VacantElection(Struct):
    """The election has no leader."""

    status: Literal["vacant"]
    election_id: str
    retry_after_ms: Milliseconds
    agent_contract: AgentContract


class Resignation(Struct):
    """The caller is no longer the leader."""

    status: Literal["vacant"]
    election_id: str
    previous_term: Token
    agent_contract: AgentContract


_LEADER = {"leader_token": {"pattern": "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$"}}
_LEASE = (errors.LeaseGone, errors.LeaseMismatch)

OPERATION_SCHEMAS = {
    "create_election": OperationSchema(
        {201: CreatedElection}, refusals=(errors.Forbidden, errors.RateLimited), uses_store=False
    ),
    "get_election_status": OperationSchema(
        {200: (LedElection, VacantElection)}, refusals=(errors.Forbidden, errors.Invalid)
    ),
    "watch_election": OperationSchema(
        {200: str},
        refusals=(errors.Forbidden, errors.Invalid, errors.RateLimited, errors.TooManyElections),
        media=frames.MEDIA.decode(),
    ),
    "campaign": OperationSchema(
        {200: (Leadership, Follower)},
        body=request_body(
            "CampaignBody",
            elections.CampaignBody,
            FIELDS["campaign"],
            candidate_id={"pattern": "^[A-Za-z0-9._:@-]{1,64}$"},
        ),
        refusals=(
            *(errors.Forbidden, errors.Invalid, InvalidTtl),
            *(errors.RateLimited, errors.TooManyElections),
        ),
    ),
    "renew_leadership": OperationSchema(
        {200: Leadership},
        body=request_body("RenewLeadershipBody", elections.LeaderBody, FIELDS["renew_leadership"], **_LEADER),
        refusals=(errors.Forbidden, errors.Invalid, InvalidTtl, *_LEASE),
    ),
    "resign": OperationSchema(
        {200: Resignation},
        body=request_body("ResignBody", elections.LeaderBody, {}, **_LEADER),
        refusals=(errors.Forbidden, errors.Invalid, *_LEASE),
    ),
}
