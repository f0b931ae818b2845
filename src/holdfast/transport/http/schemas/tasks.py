"""`/v1/tasks`: how a task is shown, and what is answered about it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core.task import STATES
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import Seconds, Time, Token

State = Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
Count = Annotated[int, Meta(ge=0)]


class PreviousAttempt(Struct, rename="camel"):
    """How the last attempt went, and what it left."""

    worker: str | None
    ended_at: Time
    outcome: str
    reason: str | None
    error_code: str | None
    checkpoint: Any
    note: str | None
    attempt: Count
    context_from: int | None


class PlainTask(Struct, rename="camel", kw_only=True):
    """A task without advice; what it was never given is left out."""

    id: str
    type: str
    status: State
    payload: dict[str, Any]
    result: dict[str, Any] | None
    priority: int
    max_attempts: int
    attempt_count: Count
    scheduled_at: Time | None
    lease_duration_seconds: Seconds
    lease_expires_at: Time | None
    created_at: Time
    updated_at: Time
    failure_reason: str | None
    output_id: str | None
    claimed_by: str | None
    cancel_requested: bool | UnsetType = UNSET
    unique_key: str | UnsetType = UNSET
    tag: str | UnsetType = UNSET
    created_by: str | UnsetType = UNSET
    reviewed_by: str | UnsetType = UNSET
    source: str | UnsetType = UNSET
    backoff: dict[str, Any] | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    dead_letter_cause: Literal["attempts_exhausted", "permanent", "lease_expired"] | UnsetType = UNSET
    resolved_at: Time | UnsetType = UNSET
    cancel_reason: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    progress: Any | UnsetType = UNSET
    checkpoint: Any | UnsetType = UNSET
    previous_attempt: PreviousAttempt | UnsetType | None = UNSET


def _spelled(name: str) -> str:
    """In camelCase, but for `agent_contract`, which is spelled alike on every route."""
    first, *rest = name.split("_")
    return name if name == "agent_contract" else first + "".join(word.title() for word in rest)


class Task(PlainTask, rename=_spelled, kw_only=True):
    """A task, and what to do with it."""

    agent_contract: AgentContract
    deduplicated: Literal[True] | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


class TakenTask(PlainTask, rename="camel", kw_only=True):
    """A task that the caller holds now. `leaseId` is the proof, `fencingToken` the fence."""

    lease_id: str
    fencing_token: Token
    attempt: Count
    traceparent: str | UnsetType = UNSET


class ClaimedTask(TakenTask, rename=_spelled, kw_only=True):
    """The same with advice."""

    agent_contract: AgentContract


class Claim(ClaimedTask, rename=_spelled, kw_only=True):
    """The claimed task at the top, and once more under `task`."""

    task: ClaimedTask
    warnings: list[str] | UnsetType = UNSET


class Claims(Struct, kw_only=True):
    """Several tasks, each with a lease of its own."""

    tasks: Annotated[list[TakenTask], Meta(min_length=1)]
    count: Count
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class NoTasks(Struct, kw_only=True):
    """There is nothing to do."""

    task: None
    message: Literal["no_tasks"]
    agent_contract: AgentContract
    tasks: Annotated[list[TakenTask], Meta(max_length=0)] | UnsetType = UNSET
    count: Literal[0] | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


class LaneBusy(Struct, rename={"in_flight": "inFlight"}, kw_only=True):
    """The session takes one task at a time, and has one."""

    task: None
    message: Literal["busy"]
    in_flight: str
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class TaskPage(Struct, rename=_spelled):
    """Tasks, newest first."""

    tasks: list[Task]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class TaskCounts(Struct):
    """How many tasks of each type are in each state."""

    types: dict[str, dict[str, Count]]
    total: dict[str, Count]
    agent_contract: AgentContract


class TaskChange(Struct, rename="camel"):
    """What changed about a task; all of the task if `full` was asked for, or if this was answered before."""

    id: str
    status: State
    attempt_count: Count
    lease_expires_at: Time | UnsetType | None = UNSET
    cancel_requested: bool | UnsetType = UNSET


class BatchResult(Struct):
    """What one item would have been answered alone: its status, and its task or the refusal."""

    status: int
    task: TaskChange | UnsetType = UNSET
    deduplicated: Literal[True] | UnsetType = UNSET
    replayed: Literal[True] | UnsetType = UNSET
    error: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    agent_contract: AgentContract | UnsetType = UNSET


class BatchResults(Struct):
    """One result for each item, in order."""

    results: list[BatchResult]
    succeeded: Count
    failed: Count
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class TriedTask(Struct, rename="camel"):
    """One attempt."""

    attempt: Count
    worker: str | None
    claimed_at: Time | None
    last_seen_at: Time | None
    fencing_token: Token | None
    ended_at: Time | None
    outcome: str | None
    reason: str | None
    error_code: str | None


class TaskAttempts(Struct):
    """Who held a task, and how that went."""

    attempts: list[TriedTask]
    agent_contract: AgentContract
