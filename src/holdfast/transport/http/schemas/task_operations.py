"""Schemas of the operations of `/v1/tasks`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.core.limits import MAX_DEADLINE_AHEAD
from holdfast.core.task import STATES
from holdfast.operations import bounds
from holdfast.transport.http.api import offers
from holdfast.transport.http.orchestrion import batch, claims, task_verbs, tasks
from holdfast.transport.http.schemas.events import EventPage, HistoryFilter
from holdfast.transport.http.schemas.operation_schema import (
    OperationSchema,
    QueryText,
    request_body,
    schema_of,
    within,
    words,
)
from holdfast.transport.http.schemas.tasks import (
    BatchResults,
    Claim,
    Claims,
    LaneBusy,
    NoTasks,
    OfferedTask,
    Task,
    TaskAttempts,
    TaskCounts,
    TaskDependencies,
    TaskPage,
    WaitingFor,
)

_TYPE = {"pattern": f"^{tasks.TYPE.pattern}$"}
_TYPES = Annotated[list[Annotated[str, Meta(extra_json_schema=_TYPE)]], Meta(max_length=bounds.MORE_TYPES.most)] | None
_WORKERS = (errors.MaxWorkersReached, errors.PlanExpired)

Delay = Annotated[float, within(bounds.TASK_DELAY)]

Moment = Annotated[str, Meta(extra_json_schema={"anyOf": [{"format": "date-time"}, {"maxLength": 0}]})]
"""A time; an empty string counts as none."""


class BackoffPolicy(Struct, forbid_unknown_fields=True):
    """The delay after attempt n, in seconds; `jitter` is the random share of it."""

    kind: Literal["fixed", "linear", "exponential"]
    base_seconds: Delay = 1.0
    max_seconds: Delay = 3600.0
    jitter: Annotated[float, Meta(ge=0, le=1)] = 0.0


class Approval(Struct, forbid_unknown_fields=True, rename="camel"):
    """A question before the first claim, with the choices approve and reject; `true` asks without a text of its own."""

    question: Annotated[str, Meta(max_length=bounds.QUESTION.most, pattern=r"\S")] | UnsetType = UNSET
    deadline: Annotated[str, Meta(extra_json_schema={"format": "date-time"})] | None = None
    on_timeout: Literal["approve", "reject"] | None = None


class TaskFilter(Struct, rename="camel"):
    """Filter and page."""

    limit: Annotated[int, within(bounds.TASK_PAGE)] = bounds.TASK_PAGE.default
    cursor: Annotated[QueryText, Meta(description="`nextCursor` of the previous page.")] | UnsetType = UNSET
    type: QueryText | UnsetType = UNSET
    status: Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})] | UnsetType = UNSET
    tag: QueryText | UnsetType = UNSET
    key: Annotated[QueryText, Meta(description="The same as `uniqueKey`.")] | UnsetType = UNSET
    unique_key: QueryText | UnsetType = UNSET
    waiting: Annotated[WaitingFor, Meta(description="What they wait for, beside a schedule.")] | UnsetType = UNSET
    worker: QueryText | UnsetType = UNSET
    session_id: QueryText | UnsetType = UNSET
    resolved: bool | UnsetType = UNSET
    created_after: Moment | UnsetType = UNSET
    created_before: Moment | UnsetType = UNSET
    updated_after: Moment | UnsetType = UNSET
    updated_before: Moment | UnsetType = UNSET


class DependentsPage(Struct):
    """Page of the tasks that depend on it."""

    limit: Annotated[int, within(bounds.TASK_PAGE)] = bounds.TASK_PAGE.default
    cursor: Annotated[QueryText, Meta(description="`nextCursor` of the previous page.")] | UnsetType = UNSET


class TaskStatusQuery(Struct):
    """How long to wait until the task is finished."""

    wait_seconds: Annotated[float, within(bounds.WAIT)] = bounds.WAIT.default


_CREATE: dict[str, Any] = {
    "type": _TYPE,
    "payload": Annotated[dict[str, Any], Meta(description=f"{str(bounds.TASK_PAYLOAD).capitalize()}.")],
    "scheduled_at": {
        "format": "date-time",
        "description": f"In the future, at most {bounds.TASK_DELAY.most // bounds.DAY} days from now.",
    },
    "depends_on": Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=bounds.TASK_UNIQUE_KEY.most, pattern="^[^\\u0000]*$")]],
        Meta(
            max_length=bounds.TASK_DEPENDENCIES.most,
            description="Ids, or unique keys of live tasks, of the tasks that must complete first; in a batch also"
            " `ref`s of other items.",
        ),
    ],
    "deadline_at": {
        "format": "date-time",
        "description": f"In the future, after `scheduledAt`, at most {MAX_DEADLINE_AHEAD // bounds.DAY} days from now.",
    },
    "idempotency_key": {"pattern": "^[ -~]*$"},
    "backoff": BackoffPolicy | None,
    "requires": words(bounds.TASK_REQUIRES),
    "approval": bool | Approval | None,
}
_SESSION_ID = {"session_id": {"format": "uuid"}}
_CLAIMER = {**_SESSION_ID, "capabilities": words(bounds.CAPABILITIES)}
_OPERATIONS = {
    "create": ("create_task", _CREATE),
    "heartbeat": ("heartbeat", _SESSION_ID),
    "complete": ("complete_task", {"result": dict[str, Any] | None | UnsetType, **_SESSION_ID}),
    "fail": ("fail_task", _SESSION_ID),
    "release": ("release_task", _SESSION_ID),
    "snooze": ("snooze_task", _SESSION_ID),
    "cancel": ("cancel_task", {}),
    "requeue": ("requeue_task", {}),
    "resolve": ("resolve_task", {}),
}
"""Each verb of a batch: its operation, and what its fields are beyond their bounds."""


def _verb_body(name: str, verb: str, body: type[Struct], **of_items: Any) -> type[Struct]:
    operation, more = _OPERATIONS[verb]
    return request_body(name, body, bounds.FIELDS.get(operation, {}), **more, **of_items)


def _items() -> Any:
    """Items of a batch: the body of a verb with `op` and, except for create, the task's `id`."""
    more: dict[Any, Any] = {batch.CreateItem: {"ref": schema_of(bounds.TASK_REF)}}
    kinds = [
        _verb_body(kind.__name__, str(kind.__struct_config__.tag), kind, **more.get(kind, {}))
        for kind in batch.Item.__args__
    ]
    union: Any = kinds[0]
    for kind in kinds[1:]:
        union |= kind
    return Annotated[list[union], Meta(min_length=bounds.BATCH_ITEMS.least, max_length=bounds.BATCH_ITEMS.most)]


_MISSING = errors.TaskMissing
_SESSION = (errors.SessionMissing, errors.SessionExpired, errors.LeaseLost)
_PROOF = (errors.InvalidTransition, errors.LeaseExpired, errors.LeaseSuperseded, errors.WrongToken)
PROOF_REFUSALS = (*_PROOF, *_SESSION)


def _verb(name: str, verb: str, *refusals: type[errors.HoldfastError]) -> OperationSchema:
    body = _verb_body(name, verb, task_verbs.VERBS[verb][1])
    return OperationSchema({200: Task}, body=body, refusals=(_MISSING, *refusals), takes_idempotency_key=True)


OPERATION_SCHEMAS = {
    "create_task": OperationSchema(
        {200: Task, 201: Task},
        body=_verb_body("CreateTaskBody", "create", tasks.CreateBody),
        refusals=(errors.QuotaExceeded, errors.PlanExpired),
        takes_idempotency_key=True,
    ),
    "list_tasks": OperationSchema({200: TaskPage}, query=TaskFilter),
    "count_tasks": OperationSchema({200: TaskCounts}),
    "batch_tasks": OperationSchema(
        {200: BatchResults},
        body=request_body("BatchTasksBody", batch.BatchBody, bounds.FIELDS["batch_tasks"], items=_items()),
        takes_idempotency_key=True,
    ),
    "claim_task": OperationSchema(
        {200: (Claim, Claims, NoTasks, LaneBusy)},
        body=request_body(
            "ClaimTaskBody",
            claims.ClaimBody,
            bounds.FIELDS["claim_task"],
            type=_TYPE,
            types=_TYPES,
            **_CLAIMER,
        ),
        refusals=(*_SESSION, *_PROOF, *_WORKERS, errors.TaskMissing, errors.TooManyWaiters),
        takes_idempotency_key=True,
    ),
    "check_task_status": OperationSchema({200: Task}, query=TaskStatusQuery, refusals=(_MISSING,)),
    "claim_task_by_id": OperationSchema(
        {200: Claim},
        body=request_body("ClaimTaskByIdBody", claims.ClaimOneBody, bounds.FIELDS["claim_task_by_id"], **_CLAIMER),
        refusals=(
            *(_MISSING, errors.TaskClaimed, errors.NotYetClaimable, errors.SessionBusy),
            *(errors.OfferRefused, errors.OfferRestricted, errors.CapabilityMissing),
            *_WORKERS,
            *(*_SESSION, *_PROOF),
        ),
        takes_idempotency_key=True,
    ),
    "heartbeat": _verb("HeartbeatTaskBody", "heartbeat", *_PROOF, *_SESSION),
    "complete_task": _verb("CompleteTaskBody", "complete", *_PROOF, *_SESSION),
    "fail_task": _verb("FailTaskBody", "fail", *_PROOF, *_SESSION),
    "release_task": _verb("ReleaseTaskBody", "release", *_PROOF, *_SESSION),
    "snooze_task": _verb("SnoozeTaskBody", "snooze", *_PROOF, *_SESSION),
    "offer_task": OperationSchema(
        {200: OfferedTask},
        body=request_body("OfferTaskBody", offers.OfferBody, bounds.FIELDS["offer_task"]),
        refusals=(_MISSING, *_PROOF),
    ),
    "withdraw_task_offer": OperationSchema(
        {200: Task},
        body=request_body("WithdrawTaskOfferBody", offers.WithdrawBody, bounds.FIELDS["withdraw_task_offer"]),
        refusals=(_MISSING, *_PROOF),
        takes_idempotency_key=True,
    ),
    "cancel_task": _verb("CancelTaskBody", "cancel", errors.InvalidTransition, errors.TaskClaimed),
    "requeue_task": _verb("RequeueTaskBody", "requeue", errors.InvalidTransition),
    "resolve_task": _verb("ResolveTaskBody", "resolve", errors.InvalidTransition),
    "task_events": OperationSchema(
        {200: EventPage}, query=HistoryFilter, refusals=(_MISSING, errors.CursorTooOld, errors.CursorAhead)
    ),
    "task_attempts": OperationSchema({200: TaskAttempts}, refusals=(_MISSING,)),
    "task_dependencies": OperationSchema({200: TaskDependencies}, query=DependentsPage, refusals=(_MISSING,)),
}
