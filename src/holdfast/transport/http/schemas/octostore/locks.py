"""Schemas of OctoStore's `/locks`."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.operations.bounds import FIELDS, LOCK_ACL
from holdfast.transport.http.octostore import locks
from holdfast.transport.http.octostore.errors import InvalidLockName, InvalidTtl
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import Milliseconds, OperationSchema, Time, Token, request_body
from holdfast.transport.http.streams import frames

AclEntry = Annotated[str, Meta(extra_json_schema={"pattern": "^(user:[A-Za-z0-9-]{1,64}|token:[!-~]{1,200})$"})]


class AccessList(Struct):
    """Who may acquire: `user:<name>` or `token:<bearer token>`."""

    acquire: Annotated[list[AclEntry], Meta(min_length=LOCK_ACL.least, max_length=LOCK_ACL.most)]


class ShownList(Struct):
    """Who may acquire; tokens are not shown."""

    acquire: list[str]


class AcquiredLock(Struct):
    """The caller holds the lock."""

    status: Literal["acquired"]
    lease_id: UUID
    fencing_token: Token
    expires_at: Time
    renew_after_ms: Milliseconds
    metadata: str | None
    agent_contract: AgentContract


class HeldLock(Struct):
    """Another client holds the lock."""

    status: Literal["held"]
    holder_id: UUID
    expires_at: Time
    retry_after_ms: Milliseconds
    metadata: str | None
    agent_contract: AgentContract


class DelayedLock(Struct):
    """The lock is free, but its lock delay has not passed."""

    status: Literal["delayed"]
    available_at: Time
    lock_delay_seconds: int
    retry_after_ms: Milliseconds
    agent_contract: AgentContract


class RenewedLock(Struct):
    """The caller's lease was renewed."""

    lease_id: UUID
    expires_at: Time
    renew_after_ms: Milliseconds
    agent_contract: AgentContract


class ListedLock(Struct):
    """A lock without its lease id."""

    name: str
    status: Literal["held", "free"]
    holder_id: UUID | None
    fencing_token: Token
    expires_at: Time | None
    metadata: str | None


class LockStatus(ListedLock, kw_only=True):
    """A lock and its access list."""

    acl: ShownList | UnsetType = UNSET
    agent_contract: AgentContract


class LockList(Struct):
    """Held locks."""

    locks: list[ListedLock]
    total: int
    prefix: str | None
    agent_contract: AgentContract


class LockAcl(Struct):
    """The access list of a lock."""

    name: str
    acl: ShownList
    agent_contract: AgentContract


class LockFilter(Struct):
    """Filter."""

    prefix: Annotated[str, Meta(description="Prefix of the lock names.")] | UnsetType = UNSET


_NAME = (InvalidLockName, errors.Forbidden)
_LEASE_ID = {"format": "uuid"}
_HOLDER = (*_NAME, errors.LeaseGone, errors.LeaseMismatch, errors.SessionMissing, errors.SessionExpired)

OPERATION_SCHEMAS = {
    "list_locks": OperationSchema({200: LockList}, query=LockFilter, refusals=(errors.Invalid,)),
    "get_lock_status": OperationSchema({200: LockStatus}, refusals=_NAME),
    "watch_lock": OperationSchema({200: str}, refusals=(*_NAME, errors.TooManyElections), media=frames.MEDIA.decode()),
    "acquire_lock": OperationSchema(
        {200: (AcquiredLock, HeldLock), 409: DelayedLock},
        body=request_body(
            "AcquireLockBody",
            locks.AcquireBody,
            FIELDS["acquire_lock"],
            session_id=_LEASE_ID,
            acl=AccessList | None,
        ),
        refusals=(
            *(*_NAME, InvalidTtl, errors.Invalid, errors.SessionMissing, errors.SessionExpired),
            *(errors.LockLimit, errors.AclConflict),
        ),
    ),
    "renew_lock": OperationSchema(
        {200: RenewedLock},
        body=request_body("RenewLockBody", locks.RenewBody, FIELDS["renew_lock"], lease_id=_LEASE_ID),
        refusals=(*_HOLDER, InvalidTtl),
    ),
    "release_lock": OperationSchema(
        {200: type(None)},
        body=request_body("ReleaseLockBody", locks.ReleaseBody, {}, lease_id=_LEASE_ID),
        refusals=_HOLDER,
    ),
    "set_lock_acl": OperationSchema(
        {200: LockAcl},
        body=request_body("SetLockAclBody", locks.PutAclBody, {}, acl=AccessList),
        refusals=(*_NAME, errors.Invalid, errors.Missing),
    ),
}
