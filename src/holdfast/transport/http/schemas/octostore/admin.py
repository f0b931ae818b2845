"""Schemas of `/admin`, `/metrics` and `/docs`, for operators.

OctoStore's own OpenAPI document allows no further fields in these bodies, so they have no `agent_contract`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.core import errors
from holdfast.transport.http.schemas.operation_schema import OperationSchema, Seconds, Time, Token

TEXTS = ("text/plain", "application/openmetrics-text")


class HeldName(Struct):
    """A held lock, job or election."""

    expires_at: Time
    fencing_token: Token
    holder_username: str
    metadata: str | None
    name: str
    ttl_remaining_seconds: Seconds


class User(Struct):
    """A user with a key."""

    created_at: Time
    github_username: str
    id: str


class AdminStatus(Struct):
    """Everything that is held, and all users."""

    active_locks: int
    healthy: Literal[True]
    locks: list[HeldName]
    total_acquires: int
    total_releases: int
    total_users: int
    uptime_seconds: Seconds
    users: list[User]


class Endpoint(Struct):
    """Request durations of one kind of request."""

    avg_ms: str
    count: int
    errors: int
    max_ms: int
    min_ms: int
    p50_ms: str
    p95_ms: str
    p99_ms: str


class LockStore(Struct):
    """Counters of lock operations."""

    cache_hits: int
    cache_misses: int
    total_acquires: int
    total_expirations: int
    total_releases: int


class Metrics(Struct):
    """Load of the server."""

    active_locks: int
    endpoints: dict[str, Endpoint]
    lock_store: LockStore
    memory_bytes: int
    requests_per_second: float
    total_requests: int
    total_users: int
    uptime_seconds: Seconds


class History(Struct):
    """Load of the server, one value per minute."""

    acquire_rates: list[int]
    active_locks: list[int]
    release_rates: list[int]
    request_volume: list[int]
    timestamps: list[int]
    window: Literal["1h", "12h", "24h", "7d"]


class HistoryWindow(Struct):
    """The time span."""

    window: Annotated[str, Meta(extra_json_schema={"enum": ["1h", "12h", "24h", "7d"]})] = "1h"


OPERATION_SCHEMAS = {
    "admin_status": OperationSchema({200: AdminStatus}),
    "metrics": OperationSchema({200: Metrics}, text_media=TEXTS),
    "prometheus": OperationSchema({200: str}, media=TEXTS[0], text_media=TEXTS[1:]),
    "metrics_history": OperationSchema({200: History}, query=HistoryWindow, refusals=(errors.Invalid,)),
    "docs": OperationSchema({200: str}, uses_store=False, media="text/html"),
}
