"""The three forms of a refusal, one for each wire."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from holdfast.transport.http.schemas.agent_contract import AgentContract


class FieldError(Struct):
    """One place of the request that is wrong."""

    pointer: str
    code: str
    message: str


class Problem(Struct):
    """A refusal on our own routes: an RFC 9457 problem. Facts about the case stand beside these fields."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    error: str
    message: str
    request_id: str
    agent_contract: AgentContract
    errors: list[FieldError] | UnsetType = UNSET
    retry_after: int | UnsetType = UNSET
    applied: Literal["no", "unknown"] | UnsetType = UNSET


class TaskRefusal(Struct):
    """A refusal on Orchestrion's routes. Facts about the case stand beside these fields."""

    error: str
    message: str
    request_id: str
    agent_contract: AgentContract
    errors: list[FieldError] | UnsetType = UNSET
    applied: Literal["no", "unknown"] | UnsetType = UNSET


class Refusal(Struct):
    """A refusal on OctoStore's routes, and by the server itself."""

    error: str
    code: str
    details: str
    request_id: str
    agent_contract: AgentContract
    retry_after_ms: int | UnsetType = UNSET
    applied: Literal["no", "unknown"] | UnsetType = UNSET
