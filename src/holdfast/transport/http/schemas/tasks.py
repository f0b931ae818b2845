"""Schemas of tasks and of the responses of `/v1/tasks`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core.limits import ON_DEPENDENCY_FAILURE
from holdfast.core.task import DEAD_CAUSES, STATES, WAITS_FOR
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import Seconds, Time, Token

State = Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
DeadLetterCause = Annotated[str, Meta(extra_json_schema={"enum": list(DEAD_CAUSES)})]
WaitingFor = Annotated[str, Meta(extra_json_schema={"enum": list(WAITS_FOR)})]
OnDependencyFailure = Annotated[str, Meta(extra_json_schema={"enum": list(ON_DEPENDENCY_FAILURE)})]
Count = Annotated[int, Meta(ge=0)]


class PreviousAttempt(Struct, rename="camel"):
    """How the previous attempt ended, with its checkpoint and note."""

    worker: str | None
    ended_at: Time
    outcome: str
    reason: str | None
    error_code: str | None
    checkpoint: Any
    note: str | None
    attempt: Count
    context_from: int | None


class OpenTaskOffer(Struct):
    """Until when a task can be taken over with a code, and by which session alone (null: any caller)."""

    until: Time
    to: str | None


class PersonsAnswer(Struct, rename="camel"):
    """The last answer of a person to a question about this task."""

    question_id: str
    kind: Literal["question", "approval"]
    question: str
    answer: str
    reason: str | None
    answered_by: str
    answered_at: Time


class PlainTask(Struct, rename="camel", kw_only=True):
    """A task without agent_contract; optional fields without a value are omitted."""

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
    dead_letter_cause: DeadLetterCause | UnsetType = UNSET
    resolved_at: Time | UnsetType = UNSET
    cancel_reason: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    progress: Any | UnsetType = UNSET
    checkpoint: Any | UnsetType = UNSET
    waiting_for: WaitingFor | UnsetType = UNSET
    depends_on: list[str] | UnsetType = UNSET
    unmet_dependencies: Count | UnsetType = UNSET
    on_dependency_failure: OnDependencyFailure | UnsetType = UNSET
    question_id: str | UnsetType = UNSET
    answered: PersonsAnswer | UnsetType = UNSET
    deadline_at: Time | UnsetType = UNSET
    max_run_seconds: Seconds | UnsetType = UNSET
    attempt_ends_at: Time | UnsetType = UNSET
    requires: list[str] | UnsetType = UNSET
    concurrency_key: str | UnsetType = UNSET
    offered: OpenTaskOffer | UnsetType = UNSET
    previous_attempt: PreviousAttempt | UnsetType | None = UNSET


def _wire_name(name: str) -> str:
    """camelCase, except `agent_contract`, which is the same on every route."""
    first, *rest = name.split("_")
    return name if name == "agent_contract" else first + "".join(word.title() for word in rest)


class Task(PlainTask, rename=_wire_name, kw_only=True):
    """A task with its agent_contract."""

    agent_contract: AgentContract
    deduplicated: Literal[True] | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


class OfferedTask(Task, rename=_wire_name, kw_only=True):
    """The caller has offered its task: who claims it with the code `offer` takes over."""

    offer: str


class Dependency(Struct, rename="camel"):
    """A task that had to complete first. All results of a claim have at most 64 KB; `resultOmitted` marks others."""

    id: str
    status: State | None
    result: dict[str, Any] | None
    result_omitted: Literal[True] | UnsetType = UNSET


class TakenTask(PlainTask, rename="camel", kw_only=True):
    """A task that the caller now holds. `leaseId` is the proof."""

    lease_id: str
    fencing_token: Token
    attempt: Count
    traceparent: str | UnsetType = UNSET
    dependencies: list[Dependency] | UnsetType = UNSET


class ClaimedTask(TakenTask, rename=_wire_name, kw_only=True):
    """A claimed task with its agent_contract."""

    agent_contract: AgentContract


class Claim(ClaimedTask, rename=_wire_name, kw_only=True):
    """The claimed task, at the top level and again under `task`."""

    task: ClaimedTask
    warnings: list[str] | UnsetType = UNSET


class Claims(Struct, kw_only=True):
    """Several tasks, each with its own lease."""

    tasks: Annotated[list[TakenTask], Meta(min_length=1)]
    count: Count
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class NoTasks(Struct, kw_only=True):
    """No task is ready."""

    task: None
    message: Literal["no_tasks"]
    agent_contract: AgentContract
    tasks: Annotated[list[TakenTask], Meta(max_length=0)] | UnsetType = UNSET
    count: Literal[0] | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


class LaneBusy(Struct, rename={"in_flight": "inFlight"}, kw_only=True):
    """The session takes one task at a time and already holds one."""

    task: None
    message: Literal["busy"]
    in_flight: str
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class TaskPage(Struct, rename=_wire_name):
    """Tasks, newest first."""

    tasks: list[Task]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class TaskCounts(Struct):
    """Number of tasks by type and state."""

    types: dict[str, dict[str, Count]]
    total: dict[str, Count]
    agent_contract: AgentContract


class TaskChange(Struct, rename="camel"):
    """The changed fields of a task; the whole task if `full` was requested or the response is replayed."""

    id: str
    status: State
    attempt_count: Count
    lease_expires_at: Time | UnsetType | None = UNSET
    cancel_requested: bool | UnsetType = UNSET


class BatchResult(Struct):
    """The response to one item: its status, and its task or the error."""

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


class RelatedTask(Struct, rename="camel", kw_only=True):
    """A task that another one needs, or that needs another one; without type and status if it was removed."""

    id: str
    type: str | None
    status: State | None
    waiting_for: WaitingFor | UnsetType = UNSET


class NeededTask(RelatedTask, rename="camel", kw_only=True):
    """A task that another one depends on; `met` once the other does not wait for it any more."""

    met: bool


class TaskDependencies(Struct, rename=_wire_name):
    """What a task depends on, and a page of the tasks that depend on it."""

    depends_on: list[NeededTask]
    dependents: list[RelatedTask]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


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
    """The attempts of a task, with worker and outcome."""

    attempts: list[TriedTask]
    agent_contract: AgentContract
