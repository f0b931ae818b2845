"""Schemas of `/v1/jobs`."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.operations.bounds import ANY_OF, FIELDS, JOB_ID, JOB_PAGE
from holdfast.transport.http.api import heartbeats, jobs, offers
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import OperationSchema, Seconds, Time, Token, request_body, within
from holdfast.transport.http.schemas.parameters import JOB_ID_PATTERN

UUID_TEXT = {"format": "uuid"}
NOT_BLANK = {"pattern": "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$"}


JobId = Annotated[str, Meta(min_length=1, max_length=JOB_ID.most, extra_json_schema={"pattern": JOB_ID_PATTERN})]
JobIds = Annotated[list[JobId], Meta(min_length=ANY_OF.least, max_length=ANY_OF.most)]


class JobEnd(Struct):
    """How the last lease of a job ended."""

    owner: str | None
    outcome: Literal[
        "released", "expired", "forced", "session_ended", "undelivered", "restored", "done", "failed", "handed_over"
    ]
    ended_at: Time
    by: str | None
    reason: str | None
    note: str | None
    checkpoint: Any
    context_from: str | None


class OpenOffer(Struct):
    """Until when a job can be taken over with a code, and by which session alone (null: any caller)."""

    until: Time
    to: str | None


class Ownership(Struct, kw_only=True):
    """The owner of a job, without proofs."""

    job_id: str
    owner: str | None
    metadata: Any
    claimed_at: Time | None
    expires_at: Time | None
    expires_in_seconds: Seconds
    note: str | None
    progress: Any
    session_id: UUID | None
    offered: OpenOffer | UnsetType = UNSET


class ListedJob(Ownership, kw_only=True):
    """A claimed job."""

    status: Literal["claimed"]


class OwnedJob(ListedJob, kw_only=True):
    """A job and its owner."""

    previous: JobEnd | None
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class RenewedJob(ListedJob, kw_only=True):
    """The caller's lease was renewed."""

    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET
    ttl_seconds: Seconds
    heartbeat_every_seconds: float


class ClaimedJob(OwnedJob, kw_only=True):
    """The caller holds the job. `lease_id` is the proof, `token` the fencing token."""

    lease_id: UUID
    token: Token
    ttl_seconds: Seconds
    heartbeat_every_seconds: float


class HeldJob(Ownership, kw_only=True):
    """Another worker holds the job, or its lock delay has not passed."""

    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET
    status: Literal["held"]
    retry_after_seconds: Seconds
    waiting: int
    waiting_id: str | UnsetType = UNSET


class OfferedJob(Ownership, kw_only=True):
    """The caller has offered its job: who claims it with the code `offer` takes over."""

    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET
    status: Literal["offered"]
    offer: str
    ttl_seconds: Seconds


class ListedDoneJob(Struct, kw_only=True):
    """A job whose work is done: by whom, when, and until when it counts as done (null: for good)."""

    status: Literal["done"]
    job_id: str
    owner: None
    by: str | None
    at: Time
    until: Time | None
    result: Any
    note: str | None


class DoneJob(ListedDoneJob, kw_only=True):
    """The work is done already, so nothing was claimed."""

    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET
    previous: JobEnd | UnsetType | None = UNSET


class FreeJob(Struct, kw_only=True):
    """The job is free."""

    status: Literal["free"]
    job_id: str
    owner: None
    previous: JobEnd | None
    agent_contract: AgentContract


class ReleasedJob(Struct, kw_only=True):
    """The job was released."""

    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET
    status: Literal["released"]
    job_id: str
    released_at: Time
    previous: JobEnd | None


class RenewedLease(Struct):
    """The result of one renewal: how long the lease lasts now, or the error."""

    status: int
    expires_in_seconds: Seconds | UnsetType = UNSET
    heartbeat_every_seconds: float | UnsetType = UNSET
    cancel_requested: bool | UnsetType = UNSET
    error: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class RenewedLeases(Struct):
    """One result for each lease, in order."""

    results: list[RenewedLease]
    succeeded: Annotated[int, Meta(ge=0)]
    failed: Annotated[int, Meta(ge=0)]
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class WaitedJob(ListedJob, kw_only=True):
    """A claimed job, and how many callers of this server process wait for it."""

    waiting: Annotated[int, Meta(ge=0)]


class JobPage(Struct, rename={"next_cursor": "nextCursor", "has_more": "hasMore"}):
    """Claimed jobs, ordered by id."""

    jobs: list[WaitedJob]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class DoneJobPage(Struct, rename={"next_cursor": "nextCursor", "has_more": "hasMore"}):
    """Done jobs, ordered by id."""

    jobs: list[ListedDoneJob]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class JobFilter(Struct):
    """Filter and page."""

    limit: Annotated[int, within(JOB_PAGE)] = JOB_PAGE.default
    prefix: Annotated[str, Meta(pattern="^[^\\u0000]*$", description="Prefix of the job ids.")] | UnsetType = UNSET
    cursor: Annotated[str, Meta(description="`nextCursor` of the previous page.")] | UnsetType = UNSET
    state: Annotated[Literal["claimed", "done"], Meta(description="Jobs that are held, or done.")] = "claimed"


_SESSION = (errors.SessionMissing, errors.SessionExpired)
_IDS = {"lease_id": UUID_TEXT, "session_id": UUID_TEXT}

OPERATION_SCHEMAS = {
    "claim_job": OperationSchema(
        {200: (ClaimedJob, HeldJob, DoneJob)},
        body=request_body(
            "ClaimJobBody",
            jobs.ClaimBody,
            FIELDS["claim_job"],
            owner=NOT_BLANK,
            metadata={"type": ["object", "string", "null"]},
            session_id=UUID_TEXT,
        ),
        refusals=(errors.LeaseLost, errors.TooManyWaiters, errors.OfferRefused, errors.OfferRestricted, *_SESSION),
        takes_idempotency_key=True,
    ),
    "claim_any_job": OperationSchema(
        {200: (ClaimedJob, HeldJob, DoneJob)},
        body=request_body(
            "ClaimAnyJobBody",
            jobs.ClaimAnyBody,
            FIELDS["claim_any_job"],
            any_of=JobIds,
            owner=NOT_BLANK,
            metadata={"type": ["object", "string", "null"]},
            session_id=UUID_TEXT,
        ),
        refusals=(errors.LeaseLost, errors.TooManyWaiters, *_SESSION),
        takes_idempotency_key=True,
    ),
    "heartbeat_job": OperationSchema(
        {200: RenewedJob},
        body=request_body("HeartbeatJobBody", jobs.HeartbeatBody, FIELDS["heartbeat_job"], **_IDS),
        refusals=(errors.LeaseLost, errors.WrongToken, *_SESSION),
        takes_idempotency_key=True,
    ),
    "heartbeat_leases": OperationSchema(
        {200: RenewedLeases},
        body=request_body("HeartbeatLeasesBody", heartbeats.HeartbeatsBody, FIELDS["heartbeat_leases"]),
    ),
    "release_job": OperationSchema(
        {200: ReleasedJob},
        body=request_body("ReleaseJobBody", jobs.ReleaseBody, FIELDS["release_job"], **_IDS),
        refusals=(errors.LeaseLost, errors.WrongToken, *_SESSION),
        takes_idempotency_key=True,
    ),
    "offer_job": OperationSchema(
        {200: OfferedJob},
        body=request_body("OfferJobBody", offers.OfferBody, FIELDS["offer_job"], lease_id=UUID_TEXT),
        refusals=(errors.LeaseLost, errors.OfferRefused),
    ),
    "withdraw_job_offer": OperationSchema(
        {200: (RenewedJob, ReleasedJob)},
        body=request_body("WithdrawJobOfferBody", offers.WithdrawBody, {}, lease_id=UUID_TEXT),
        refusals=(errors.LeaseLost,),
        takes_idempotency_key=True,
    ),
    "force_release_job": OperationSchema(
        {200: ReleasedJob},
        body=request_body("ForceReleaseJobBody", jobs.ForceBody, FIELDS["force_release_job"], reason=NOT_BLANK),
        refusals=(errors.NotHeld,),
        takes_idempotency_key=True,
    ),
    "get_job_owner": OperationSchema({200: (OwnedJob, FreeJob, DoneJob)}),
    "list_claimed_jobs": OperationSchema({200: (JobPage, DoneJobPage)}, query=JobFilter),
}
