"""`/v1/tasks`: what its operations take, and what comes of each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.core.task import STATES, retry
from holdfast.engine.verbs.tasks.queueing import MAX_LIMIT
from holdfast.transport.http.bodies import query
from holdfast.transport.http.orchestrion import batch, lists, task_verbs, tasks
from holdfast.transport.http.schemas.events import EventPage, HistoryFilter
from holdfast.transport.http.schemas.operation_schema import Shape, described, number, text
from holdfast.transport.http.schemas.tasks import (
    BatchResults,
    Claim,
    Claims,
    LaneBusy,
    NoTasks,
    Task,
    TaskAttempts,
    TaskCounts,
    TaskPage,
)

_TYPE = {"pattern": f"^{tasks.TYPE.pattern}$"}
_LABEL = text(tasks.MAX_LABEL)
_DELAY = number(0, retry.MAX_DELAY)
_WORKERS = (errors.MaxWorkersReached, errors.PlanExpired)

Delay = Annotated[float, Meta(ge=0, le=retry.MAX_DELAY)]
Text = Annotated[str, Meta(max_length=query.MAX_TEXT, pattern="^[^\\u0000]*$")]

Moment = Annotated[str, Meta(extra_json_schema={"anyOf": [{"format": "date-time"}, {"maxLength": 0}]})]
"""A time; an empty one is as good as none."""


class BackoffPolicy(Struct, forbid_unknown_fields=True):
    """The delay after attempt n, in seconds; `jitter` is which part of it is left to chance."""

    kind: Literal["fixed", "linear", "exponential"]
    base_seconds: Delay = 1.0
    max_seconds: Delay = 3600.0
    jitter: Annotated[float, Meta(ge=0, le=1)] = 0.0


class TaskFilter(Struct, rename="camel"):
    """Which tasks."""

    limit: Annotated[int, Meta(ge=1, le=lists.MAX_PAGE)] = lists.PAGE
    cursor: Annotated[Text, Meta(description="`nextCursor` of the page before.")] | UnsetType = UNSET
    type: Text | UnsetType = UNSET
    status: Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})] | UnsetType = UNSET
    tag: Text | UnsetType = UNSET
    key: Annotated[Text, Meta(description="The same as `uniqueKey`.")] | UnsetType = UNSET
    unique_key: Text | UnsetType = UNSET
    worker: Text | UnsetType = UNSET
    session_id: Text | UnsetType = UNSET
    resolved: bool | UnsetType = UNSET
    created_after: Moment | UnsetType = UNSET
    created_before: Moment | UnsetType = UNSET
    updated_after: Moment | UnsetType = UNSET
    updated_before: Moment | UnsetType = UNSET


class TaskPatience(Struct):
    """How long to wait for its end."""

    wait_seconds: Annotated[float, Meta(ge=0, le=tasks.MAX_WAIT)] = 0


_CREATE = {
    "type": _TYPE,
    "payload": Annotated[dict[str, Any], Meta(description="At most 64 KB and 5 levels.")],
    "priority": number(0, 100),
    "max_attempts": number(1, 10),
    "lease_duration_seconds": number(30, 3600),
    "scheduled_at": {"format": "date-time", "description": "In the future, at most 30 days ahead."},
    "idempotency_key": {"minLength": 1, "maxLength": tasks.MAX_KEY, "pattern": "^[ -~]*$"},
    "unique_key": text(tasks.MAX_KEY, least=1),
    "tag": text(tasks.MAX_TAG),
    "created_by": _LABEL,
    "reviewed_by": _LABEL,
    "source": _LABEL,
    "backoff": BackoffPolicy | None,
}
_CLAIMER = {"worker_id": _LABEL, "session_id": {"format": "uuid"}, "session_lease_id": _LABEL}
_HOLDER = {"lease_id": _LABEL, "note": text(task_verbs.MAX_NOTE)}
_BOUNDS: dict[str, dict[str, Any]] = {
    "create": _CREATE,
    "heartbeat": _HOLDER,
    "complete": _HOLDER | {"result": dict[str, Any] | None | UnsetType, "output_id": _LABEL},
    "fail": _HOLDER
    | {
        "reason": text(task_verbs.MAX_REASON),
        "error_code": text(task_verbs.MAX_CODE),
        "retry_after_seconds": _DELAY,
    },
    "release": _HOLDER | {"delay_seconds": _DELAY},
    "snooze": _HOLDER | {"seconds": _DELAY},
    "cancel": {"reason": text(task_verbs.MAX_REASON)},
    "requeue": {},
    "resolve": {},
}


def _items() -> Any:
    """Every kind of item of a batch: the body of a verb, with `op` and, but for create, the task's `id`."""
    kinds = [described(kind.__name__, kind, **_BOUNDS[str(kind.__struct_config__.tag)]) for kind in batch.Item.__args__]
    union: Any = kinds[0]
    for kind in kinds[1:]:
        union |= kind
    return Annotated[list[union], Meta(min_length=1, max_length=batch.MAX_ITEMS)]


_MISSING = errors.TaskMissing
_SESSION = (errors.SessionMissing, errors.SessionExpired, errors.LeaseLost)
_PROOF = (errors.InvalidTransition, errors.LeaseExpired, errors.LeaseSuperseded, errors.WrongToken)


def _verb(name: str, verb: str, *refusals: type[errors.HoldfastError]) -> Shape:
    body = described(name, task_verbs.VERBS[verb][1], **_BOUNDS[verb])
    return Shape({200: Task}, body=body, refusals=(_MISSING, *refusals), once=True)


SHAPES = {
    "create_task": Shape(
        {200: Task, 201: Task},
        body=described("CreateTaskBody", tasks.CreateBody, **_CREATE),
        refusals=(errors.QuotaExceeded, errors.PlanExpired),
        once=True,
    ),
    "list_tasks": Shape({200: TaskPage}, query=TaskFilter),
    "count_tasks": Shape({200: TaskCounts}),
    "batch_tasks": Shape(
        {200: BatchResults}, body=described("BatchTasksBody", batch.BatchBody, items=_items()), once=True
    ),
    "claim_task": Shape(
        {200: (Claim, Claims, NoTasks, LaneBusy)},
        body=described(
            "ClaimTaskBody",
            tasks.ClaimBody,
            type=_TYPE,
            types=Annotated[list[Annotated[str, Meta(extra_json_schema=_TYPE)]], Meta(max_length=tasks.MAX_TYPES - 1)]
            | None,
            limit=number(1, MAX_LIMIT),
            wait_seconds=number(0, tasks.MAX_WAIT),
            **_CLAIMER,
        ),
        refusals=(*_SESSION, *_PROOF, *_WORKERS, errors.TaskMissing, errors.TooManyWaiters),
        once=True,
    ),
    "check_task_status": Shape({200: Task}, query=TaskPatience, refusals=(_MISSING,)),
    "claim_task_by_id": Shape(
        {200: Claim},
        body=described("ClaimTaskByIdBody", tasks.ClaimOneBody, **_CLAIMER),
        refusals=(
            *(_MISSING, errors.TaskClaimed, errors.NotYetClaimable, errors.SessionBusy),
            *_WORKERS,
            *(*_SESSION, *_PROOF),
        ),
        once=True,
    ),
    "heartbeat": _verb("HeartbeatTaskBody", "heartbeat", *_PROOF),
    "complete_task": _verb("CompleteTaskBody", "complete", *_PROOF),
    "fail_task": _verb("FailTaskBody", "fail", *_PROOF),
    "release_task": _verb("ReleaseTaskBody", "release", *_PROOF),
    "snooze_task": _verb("SnoozeTaskBody", "snooze", *_PROOF),
    "cancel_task": _verb("CancelTaskBody", "cancel", errors.InvalidTransition, errors.TaskClaimed),
    "requeue_task": _verb("RequeueTaskBody", "requeue", errors.InvalidTransition),
    "resolve_task": _verb("ResolveTaskBody", "resolve", errors.InvalidTransition),
    "task_events": Shape({200: EventPage}, query=HistoryFilter, refusals=(_MISSING,)),
    "task_attempts": Shape({200: TaskAttempts}, refusals=(_MISSING,)),
}
