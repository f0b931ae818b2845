"""Schema of `agent_contract`, the advice in every response."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType


class NextAction(Struct):
    """One possible action; `method` and `endpoint` if it is a request."""

    action: str
    available: bool
    recommended: bool
    description: str | UnsetType = UNSET
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | UnsetType = UNSET
    endpoint: str | UnsetType = UNSET
    retry_after_seconds: int | UnsetType = UNSET


class AgentContract(Struct):
    """What an agent should do next; the first recommended action is the one to take."""

    version: Literal["1"]
    retryable: bool
    next_actions: list[NextAction]
    lease_valid: bool | UnsetType = UNSET
    lease_expires_in_seconds: int | UnsetType | None = UNSET
    recommended_heartbeat_interval_seconds: float | UnsetType = UNSET
    task_claimable: bool | UnsetType = UNSET
