"""Schemas of probes and documents."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import OperationSchema, Time


class ListedOperation(Struct):
    """One operation."""

    action: str
    method: str
    endpoint: str
    description: str


class Index(Struct):
    """All operations of the server."""

    name: Literal["holdfast"]
    version: str
    operations: list[ListedOperation]
    agent_contract: AgentContract


class Upkeep(Struct, rename="camel"):
    """When a background job last ran, and whether that is recent enough."""

    last_run_at: Time | None
    stale_sec: int | None
    healthy: bool


class Health(Struct, rename={"lease_expiry_job": "leaseExpiryJob", "retention_cleanup_job": "retentionCleanupJob"}):
    """The server responds."""

    status: Literal["ok"]
    storage: Literal["wal"]
    db_size_bytes: int
    lease_expiry_job: Upkeep
    retention_cleanup_job: Upkeep


class Alert(Struct):
    """How often a rare problem occurred."""

    total: int
    last_hour: int
    alert: bool


class Status(Struct):
    """Counters since the server started."""

    status: Literal["ok"]
    active_locks: int
    total_acquires: int
    total_releases: int
    total_users: int
    uptime_seconds: int
    alerts: dict[str, Alert]
    agent_contract: AgentContract


class Alive(Struct):
    """The process is alive."""

    status: Literal["ok"]


class Part(Struct):
    """A background loop or the store."""

    ok: bool
    last_success_seconds_ago: float | None


class Ready(Struct):
    """The server is ready."""

    status: Literal["ready"]
    store: str
    parts: dict[str, Part]
    damaged_rows: int | UnsetType = UNSET
    """Stored rows that cannot be used; absent if there are none."""


class NotReady(Struct):
    """The server is not ready."""

    status: Literal["unavailable"]
    reason: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    parts: dict[str, Part] | UnsetType = UNSET


class Version(Struct):
    """Name and version of the server."""

    name: Literal["holdfast"]
    version: str


_DOCUMENT = {200: dict[str, Any], 304: None}
_TEXT = {200: str, 304: None}

OPERATION_SCHEMAS = {
    "index": OperationSchema({200: Index}, uses_store=False),
    "health": OperationSchema({200: Health}, uses_store=False),
    "status": OperationSchema({200: Status}),
    "healthz": OperationSchema({200: Alive}, uses_store=False),
    "readyz": OperationSchema({200: Ready, 503: NotReady}, uses_store=False),
    "version": OperationSchema({200: Version}, uses_store=False),
    "openapi_json": OperationSchema(_DOCUMENT, uses_store=False),
    "schema": OperationSchema(_DOCUMENT, uses_store=False),
    "openapi_yaml": OperationSchema(_DOCUMENT, uses_store=False, media="application/yaml"),
    "agent_json": OperationSchema(_DOCUMENT, uses_store=False),
    "agent_card": OperationSchema(_DOCUMENT, uses_store=False),
    "capabilities": OperationSchema(_DOCUMENT, uses_store=False),
    "tool": OperationSchema(_DOCUMENT, uses_store=False),
    "llms_txt": OperationSchema(_TEXT, uses_store=False, media="text/plain"),
    "agents_md": OperationSchema(_TEXT, uses_store=False, media="text/markdown"),
    "skill_md": OperationSchema(_TEXT, uses_store=False, media="text/markdown"),
}
