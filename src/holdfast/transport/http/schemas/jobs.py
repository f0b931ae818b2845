"""`/v1/jobs`."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.transport.http.api import jobs
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import Seconds, Shape, Time, Token, described, number, text

UUID_TEXT = {"format": "uuid"}
NOT_BLANK = {"pattern": "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$"}


class JobEnd(Struct):
    """How the last ownership of a job ended, for a successor."""

    owner: str | None
    outcome: Literal["released", "expired", "forced", "session_ended", "undelivered"]
    ended_at: Time
    by: str | None
    reason: str | None
    note: str | None
    checkpoint: Any
    context_from: str | None


class Ownership(Struct, kw_only=True):
    """What anybody may see of who owns a job."""

    job_id: str
    owner: str | None
    metadata: Any
    claimed_at: Time | None
    expires_at: Time | None
    expires_in_seconds: Seconds
    note: str | None
    progress: Any
    session_id: UUID | None


class ListedJob(Ownership, kw_only=True):
    """A job that somebody owns."""

    status: Literal["claimed"]


class OwnedJob(ListedJob, kw_only=True):
    """A job and its owner."""

    previous: JobEnd | None
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class RenewedJob(ListedJob, kw_only=True):
    """The job is the caller's for longer."""

    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET
    ttl_seconds: Seconds
    heartbeat_every_seconds: float


class ClaimedJob(OwnedJob, kw_only=True):
    """The job is the caller's. `lease_id` is the proof, `token` the fence."""

    lease_id: UUID
    token: Token
    ttl_seconds: Seconds
    heartbeat_every_seconds: float


class HeldJob(Ownership, kw_only=True):
    """Somebody else has it, or it rests."""

    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET
    status: Literal["held"]
    retry_after_seconds: Seconds
    waiting: int


class FreeJob(Struct, kw_only=True):
    """Nobody owns the job."""

    status: Literal["free"]
    job_id: str
    owner: None
    previous: JobEnd | None
    agent_contract: AgentContract


class ReleasedJob(Struct, kw_only=True):
    """The job is the next one's."""

    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET
    status: Literal["released"]
    job_id: str
    released_at: Time
    previous: JobEnd | None


class JobPage(Struct, rename={"next_cursor": "nextCursor", "has_more": "hasMore"}):
    """Jobs that somebody owns, by id."""

    jobs: list[ListedJob]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class JobFilter(Struct):
    """Which jobs."""

    limit: Annotated[int, Meta(ge=1, le=jobs.MAX_PAGE)] = jobs.PAGE
    prefix: Annotated[str, Meta(pattern="^[^\\u0000]*$", description="How the ids begin.")] | UnsetType = UNSET
    cursor: Annotated[str, Meta(description="`nextCursor` of the page before.")] | UnsetType = UNSET


_PROOF = {
    "lease_id": UUID_TEXT,
    "note": text(jobs.MAX_NOTE),
}
_SESSION = (errors.SessionMissing, errors.SessionExpired)

SHAPES = {
    "claim_job": Shape(
        {200: (ClaimedJob, HeldJob)},
        body=described(
            "ClaimJobBody",
            jobs.ClaimBody,
            owner=text(jobs.MAX_OWNER, least=1) | NOT_BLANK,
            ttl_seconds=number(1, jobs.MAX_TTL),
            metadata={"type": ["object", "string", "null"]},
            session_id=UUID_TEXT,
            session_lease_id=text(jobs.MAX_OWNER),
            wait_seconds=number(0, jobs.MAX_WAIT),
        ),
        refusals=(errors.LeaseLost, errors.TooManyWaiters, *_SESSION),
        once=True,
    ),
    "heartbeat_job": Shape(
        {200: RenewedJob},
        body=described("HeartbeatJobBody", jobs.HeartbeatBody, **_PROOF, ttl_seconds=number(1, jobs.MAX_TTL)),
        refusals=(errors.LeaseLost, errors.WrongToken),
        once=True,
    ),
    "release_job": Shape(
        {200: ReleasedJob},
        body=described("ReleaseJobBody", jobs.ReleaseBody, **_PROOF),
        refusals=(errors.LeaseLost, errors.WrongToken),
        once=True,
    ),
    "force_release_job": Shape(
        {200: ReleasedJob},
        body=described("ForceReleaseJobBody", jobs.ForceBody, reason=text(jobs.MAX_REASON, least=1) | NOT_BLANK),
        refusals=(errors.NotHeld,),
        once=True,
    ),
    "get_job_owner": Shape({200: (OwnedJob, FreeJob)}),
    "list_claimed_jobs": Shape({200: JobPage}, query=JobFilter),
}
