"""`/admin`, `/metrics`, `/docs`: for whoever runs the server."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.core import errors
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import OperationSchema, Seconds, Time, Token

TEXTS = ("text/plain", "application/openmetrics-text")


class HeldName(Struct):
    """A name that somebody holds."""

    expires_at: Time
    fencing_token: Token
    holder_username: str
    metadata: str | None
    name: str
    ttl_remaining_seconds: Seconds


class User(Struct):
    """Somebody with a key."""

    created_at: Time
    github_username: str
    id: str


class AdminStatus(Struct):
    """Who holds what, and who has a key."""

    active_locks: int
    agent_contract: AgentContract
    healthy: Literal[True]
    locks: list[HeldName]
    total_acquires: int
    total_releases: int
    total_users: int
    truncated: bool
    uptime_seconds: Seconds
    users: list[User]


class Endpoint(Struct):
    """How long the requests of one kind took."""

    avg_ms: str
    count: int
    errors: int
    max_ms: int
    min_ms: int
    p50_ms: str
    p95_ms: str
    p99_ms: str


class LockStore(Struct):
    """What was done with locks."""

    cache_hits: int
    cache_misses: int
    total_acquires: int
    total_expirations: int
    total_releases: int


class Metrics(Struct):
    """How busy the server is."""

    active_locks: int
    agent_contract: AgentContract
    endpoints: dict[str, Endpoint]
    lock_store: LockStore
    memory_bytes: int
    requests_per_second: float
    total_requests: int
    total_users: int
    uptime_seconds: Seconds


class History(Struct):
    """How busy it was, minute by minute."""

    acquire_rates: list[int]
    active_locks: list[int]
    agent_contract: AgentContract
    release_rates: list[int]
    request_volume: list[int]
    timestamps: list[int]
    window: Literal["1h", "12h", "24h", "7d"]


class HistoryWindow(Struct):
    """How far back."""

    window: Annotated[str, Meta(extra_json_schema={"enum": ["1h", "12h", "24h", "7d"]})] = "1h"


OPERATION_SCHEMAS = {
    "admin_status": OperationSchema({200: AdminStatus}),
    "metrics": OperationSchema({200: Metrics}, text_media=TEXTS),
    "prometheus": OperationSchema({200: str}, media=TEXTS[0], text_media=TEXTS[1:]),
    "metrics_history": OperationSchema({200: History}, query=HistoryWindow, refusals=(errors.Invalid,)),
    "docs": OperationSchema({200: str}, uses_store=False, media="text/html"),
}
