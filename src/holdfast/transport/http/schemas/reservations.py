"""Schemas of `/v1/reservations`."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.core.limits import MAX_PATH_LENGTH
from holdfast.operations.bounds import (
    CHECKED_PATHS,
    FIELDS,
    PATH_FILTER,
    RESERVATION_PAGE,
    RESERVED_PATHS,
    SPACE_FILTER,
)
from holdfast.transport.http.api import offers
from holdfast.transport.http.api.reservations import reads, verbs
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.jobs import NOT_BLANK, UUID_TEXT, OpenOffer
from holdfast.transport.http.schemas.operation_schema import (
    OperationSchema,
    QueryText,
    Seconds,
    Time,
    Token,
    request_body,
    within,
)

Path = Annotated[str, Meta(min_length=1, max_length=MAX_PATH_LENGTH)]
Patterns = Annotated[list[Path], Meta(min_length=RESERVED_PATHS.least, max_length=RESERVED_PATHS.most)]
Paths = Annotated[list[Path], Meta(min_length=CHECKED_PATHS.least, max_length=CHECKED_PATHS.most)]
Mode = Literal["exclusive", "shared"]


class ReservationEnd(Struct):
    """How a reservation ended."""

    how: str
    at: Time | None
    by: str | None
    reason: str | None


class ListedReservation(Struct, kw_only=True):
    """A reservation, without proofs."""

    status: Literal["reserved", "waiting", "ended"]
    reservation_id: str
    space: str
    owner: str
    paths: list[str]
    mode: Mode
    reason: str | None
    metadata: Any
    reserved_at: Time | None
    expires_at: Time | None
    expires_in_seconds: Seconds
    session_id: UUID | None
    note: str | None
    checkpoint: Any
    offered: OpenOffer | UnsetType = UNSET
    ended: ReservationEnd | UnsetType = UNSET


class ReadReservation(ListedReservation, kw_only=True):
    """One reservation."""

    agent_contract: AgentContract


class RenewedReservation(ListedReservation, kw_only=True):
    """The caller's reservation."""

    ttl_seconds: Seconds
    heartbeat_every_seconds: float
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class ReservedFiles(RenewedReservation, kw_only=True):
    """The caller holds the files. `lease_id` is the proof, `token` the fencing token."""

    lease_id: UUID
    token: Token


class OfferedFiles(ListedReservation, kw_only=True):
    """The caller has offered its reservation: who claims it with the code `offer` takes over."""

    status: Literal["offered"]  # type: ignore[assignment]
    offer: str
    ttl_seconds: Seconds
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class Meeting(Struct):
    """Two patterns that some path matches."""

    yours: str
    theirs: str


class FileConflict(Struct):
    """A conflicting reservation: held, or waited for by somebody who came first."""

    reservation_id: str
    status: Literal["reserved", "waiting", "ended"]
    owner: str
    mode: Mode
    reason: str | None
    expires_at: Time | None
    expires_in_seconds: Seconds | None
    paths: list[Meeting]


class HeldFiles(Struct, kw_only=True):
    """Others hold files that the caller asked for: nothing was reserved."""

    status: Literal["held"]
    conflicts: list[FileConflict]
    waiting: Annotated[int, Meta(ge=0)]
    retry_after_seconds: Seconds
    waiting_id: str | UnsetType = UNSET
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class ReleasedFiles(Struct, kw_only=True):
    """The reservation has ended."""

    status: Literal["released"]
    reservation_id: str
    space: str
    paths: list[str]
    released_at: Time
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class ReservationPage(Struct, rename={"next_cursor": "nextCursor", "has_more": "hasMore"}):
    """Reservations, ordered by space and id."""

    reservations: list[ListedReservation]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class CoveringReservation(ListedReservation, kw_only=True):
    """A reservation that covers a file."""

    yours: bool


class CheckedFile(Struct):
    """Whether the caller may change a file, and who has reserved it."""

    path: str
    allowed: bool
    reserved_by: list[CoveringReservation]


class CheckedFiles(Struct, kw_only=True):
    """One entry for each path, in order."""

    space: str
    all_allowed: bool
    files: list[CheckedFile]
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class ReservationFilter(Struct):
    """Filter and page."""

    limit: Annotated[int, within(RESERVATION_PAGE)] = RESERVATION_PAGE.default
    space: Annotated[str, Meta(max_length=SPACE_FILTER.most, description="The repository.")] | UnsetType = UNSET
    path: (
        Annotated[str, Meta(max_length=PATH_FILTER.most, description="A path in `space`: reservations that cover it.")]
        | UnsetType
    ) = UNSET
    owner: Annotated[QueryText, Meta(description="The owner.")] | UnsetType = UNSET
    cursor: Annotated[QueryText, Meta(description="`nextCursor` of the previous page.")] | UnsetType = UNSET


_HOLDER = (errors.ReservationMissing, errors.LeaseLost, errors.WrongToken)
_SESSION = (errors.SessionMissing, errors.SessionExpired)
_IDS = {"lease_id": UUID_TEXT, "session_id": UUID_TEXT}

OPERATION_SCHEMAS = {
    "reserve_files": OperationSchema(
        {200: (ReservedFiles, HeldFiles)},
        body=request_body(
            "ReserveFilesBody",
            verbs.ReserveBody,
            FIELDS["reserve_files"],
            space=NOT_BLANK,
            owner=NOT_BLANK,
            paths=Patterns,
            metadata={"type": ["object", "null"]},
            session_id=UUID_TEXT,
        ),
        refusals=(
            errors.LeaseLost,
            errors.SpaceFull,
            errors.TooManyWaiters,
            errors.SessionMissing,
            errors.SessionExpired,
        ),
        takes_idempotency_key=True,
    ),
    "list_reservations": OperationSchema({200: ReservationPage}, query=ReservationFilter),
    "check_files": OperationSchema(
        {200: CheckedFiles},
        body=request_body("CheckFilesBody", reads.CheckBody, FIELDS["check_files"], space=NOT_BLANK, paths=Paths),
    ),
    "read_reservation": OperationSchema({200: ReadReservation}, refusals=(errors.ReservationMissing,)),
    "heartbeat_reservation": OperationSchema(
        {200: RenewedReservation},
        body=request_body(
            "HeartbeatReservationBody",
            verbs.HeartbeatReservationBody,
            FIELDS["heartbeat_reservation"],
            **_IDS,
        ),
        refusals=(*_HOLDER, *_SESSION),
        takes_idempotency_key=True,
    ),
    "release_files": OperationSchema(
        {200: (ReleasedFiles, RenewedReservation)},
        body=request_body("ReleaseFilesBody", verbs.ReleaseFilesBody, FIELDS["release_files"], **_IDS),
        refusals=(*_HOLDER, *_SESSION),
        takes_idempotency_key=True,
    ),
    "extend_reservation": OperationSchema(
        {200: (RenewedReservation, HeldFiles)},
        body=request_body(
            "ExtendReservationBody",
            verbs.ExtendBody,
            FIELDS["extend_reservation"],
            **_IDS,
            paths=Patterns,
        ),
        refusals=(*_HOLDER, *_SESSION, errors.SpaceFull),
        takes_idempotency_key=True,
    ),
    "offer_reservation": OperationSchema(
        {200: OfferedFiles},
        body=request_body("OfferReservationBody", offers.OfferBody, FIELDS["offer_reservation"], lease_id=UUID_TEXT),
        refusals=_HOLDER,
    ),
    "withdraw_reservation_offer": OperationSchema(
        {200: (RenewedReservation, ReleasedFiles)},
        body=request_body("WithdrawReservationOfferBody", offers.WithdrawBody, {}, lease_id=UUID_TEXT),
        refusals=_HOLDER,
        takes_idempotency_key=True,
    ),
    "claim_reservation": OperationSchema(
        {200: ReservedFiles},
        body=request_body(
            "ClaimReservationBody",
            verbs.TakeBody,
            FIELDS["claim_reservation"],
            owner=NOT_BLANK,
            session_id=UUID_TEXT,
        ),
        refusals=(
            errors.ReservationMissing,
            errors.LeaseLost,
            errors.OfferRefused,
            errors.OfferRestricted,
            errors.SessionMissing,
            errors.SessionExpired,
        ),
        takes_idempotency_key=True,
    ),
    "force_release_reservation": OperationSchema(
        {200: ReleasedFiles},
        body=request_body(
            "ForceReleaseReservationBody",
            verbs.ForceReservationBody,
            FIELDS["force_release_reservation"],
            reason=NOT_BLANK,
        ),
        refusals=(errors.ReservationMissing, errors.NotHeld),
        takes_idempotency_key=True,
    ),
}
