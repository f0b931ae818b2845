"""Error bodies: RFC 9457 problems, Orchestrion's and OctoStore's envelopes."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from holdfast.transport.http.schemas.agent_contract import AgentContract


class FieldError(Struct):
    """One invalid field of the request."""

    pointer: str
    code: str
    message: str


class Problem(Struct):
    """An error of the Holdfast API: an RFC 9457 problem, with further fields that depend on the error."""

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
    """An error of Orchestrion's routes, with further fields that depend on the error."""

    error: str
    message: str
    request_id: str
    agent_contract: AgentContract
    errors: list[FieldError] | UnsetType = UNSET
    applied: Literal["no", "unknown"] | UnsetType = UNSET


class Refusal(Struct):
    """An error of OctoStore's routes, or of the server before routing."""

    error: str
    code: str
    details: str
    request_id: str
    agent_contract: AgentContract
    retry_after_ms: int | UnsetType = UNSET
    applied: Literal["no", "unknown"] | UnsetType = UNSET
