"""Tasks as Orchestrion's JSON documents."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import msgspec

from holdfast.core import task as tasks
from holdfast.core.offer import open_offer
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import Task, lease_ttl
from holdfast.engine.verbs.tasks.claiming import GrantedTask
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.advice.contract import Advice
from holdfast.transport.http.request import raw_json
from holdfast.transport.times import milliseconds, milliseconds_or_none


def task_document(task: Task, now: Instant, contract: Advice | None = None) -> dict[str, Any]:
    """A task. Optional fields without a value are omitted, except those that Orchestrion's clients expect as null."""
    document: dict[str, Any] = {
        "id": task.id,
        "type": task.type,
        "status": task.state,
        "payload": msgspec.Raw(task.payload.encode()),
        "result": raw_json(task.result),
        "priority": task.priority,
        "maxAttempts": task.max_attempts,
        "attemptCount": task.attempt_count,
        "scheduledAt": milliseconds_or_none(task.scheduled_at if task.waits_for is None else task.planned_at),
        "leaseDurationSeconds": lease_ttl(task) // SECOND,
        "leaseExpiresAt": milliseconds_or_none(task.expires_at),
        "createdAt": milliseconds(task.created_at),
        "updatedAt": milliseconds(task.changed_at),
        "failureReason": task.failure_reason,
        "outputId": task.output_id,
        "claimedBy": task.worker,
    }
    if task.state == tasks.CLAIMED:
        document["cancelRequested"] = task.cancel_requested
    if _optional(task) != _NO_OPTIONAL:
        document |= _optional_fields(task)
    if task.offer is not None and (offer := open_offer(task, now)) is not None:
        document["offered"] = {"until": milliseconds(offer.until), "to": offer.to}
    if task.ended is not None:
        document["previousAttempt"] = _previous_attempt(task)
    if contract is None:
        contract = task_advice.for_task(task, now)
    if contract:
        document["agent_contract"] = contract
    return document


_optional = attrgetter(
    "unique_key", "tag", "created_by", "reviewed_by", "source", "backoff", "session", "dead_cause", "resolved_at",
    "cancel_reason", "note", "progress", "checkpoint", "waits_for", "deadline_at", "max_run", "depends_on", "requires",
    "question", "answered", "concurrency_key",
)  # fmt: skip
_NO_OPTIONAL = _optional(Task("", ""))


def _optional_fields(task: Task) -> dict[str, Any]:
    cancelled = task.cancel_requested or task.state == tasks.CANCELLED
    optional = (
        ("uniqueKey", task.unique_key),
        ("tag", task.tag),
        ("createdBy", task.created_by),
        ("reviewedBy", task.reviewed_by),
        ("source", task.source),
        ("backoff", raw_json(task.backoff)),
        ("sessionId", task.session),
        ("deadLetterCause", task.dead_cause),
        ("resolvedAt", milliseconds_or_none(task.resolved_at)),
        ("cancelReason", task.cancel_reason if cancelled else None),
        ("note", task.note),
        ("progress", raw_json(task.progress)),
        ("checkpoint", raw_json(task.checkpoint)),
        ("waitingFor", task.waits_for),
        ("dependsOn", raw_json(task.depends_on)),
        ("unmetDependencies", None if task.depends_on is None else task.unmet),
        ("onDependencyFailure", None if task.depends_on is None else task.on_dependency_failure),
        ("questionId", task.question),
        ("answered", _answered(task)),
        ("deadlineAt", milliseconds_or_none(task.deadline_at)),
        ("maxRunSeconds", None if task.max_run is None else task.max_run // SECOND),
        ("attemptEndsAt", milliseconds_or_none(task.run_until)),
        ("requires", None if task.requires is None else task.requires.split(",")),
        ("concurrencyKey", task.concurrency_key),
    )
    return {name: value for name, value in optional if value is not None}


def _answered(task: Task) -> dict[str, Any] | None:
    """The last answer of a person."""
    last = tasks.last_answer(task)
    if last is None:
        return None
    return {
        "questionId": last.id,
        "kind": last.kind,
        "question": last.question,
        "answer": last.answer,
        "reason": last.reason,
        "answeredBy": last.by,
        "answeredAt": milliseconds(last.at),
    }


def claimed_task_document(
    claimed: GrantedTask,
    now: Instant,
    contract: Advice | None = None,
    dependencies: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A task for the worker that just claimed it: with its lease id, fencing token and what came before it."""
    document = task_document(claimed.task, now, contract)
    if dependencies is not None:
        document["dependencies"] = dependencies
    document["leaseId"] = claimed.lease_id
    document["fencingToken"] = claimed.task.token
    document["attempt"] = claimed.task.attempt
    document.setdefault("previousAttempt", None)
    if claimed.task.traceparent is not None:
        document["traceparent"] = claimed.task.traceparent
    return document


def _previous_attempt(task: Task) -> dict[str, Any] | None:
    attempt = tasks.last_attempt(task)
    if attempt is None:
        return None
    return {
        "worker": attempt.worker,
        "endedAt": milliseconds(attempt.at),
        "outcome": attempt.outcome,
        "reason": attempt.reason,
        "errorCode": attempt.code,
        "checkpoint": raw_json(task.ended_checkpoint),
        "note": attempt.note,
        "attempt": attempt.attempt,
        "contextFrom": attempt.context_from,
    }
