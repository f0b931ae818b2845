"""`/v1/capabilities`: states, bounds, error codes, action codes, rate limits and plans, for programs."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import task as tasks
from holdfast.core.plan import CLAIM, CREATE, HEARTBEAT, MUTATION, READ, Plan
from holdfast.core.principal import SCOPES
from holdfast.core.task.capabilities import WORD
from holdfast.engine.cleanup import KEEP_ANSWERS
from holdfast.operations import bounds
from holdfast.operations.bound_kinds import JsonSize, Length, Range
from holdfast.operations.operation import DISCOVERY, REGISTRATION
from holdfast.operations.table import OPERATIONS
from holdfast.settings import Settings
from holdfast.settings.fields import CLOSED, OPEN
from holdfast.transport import untrusted_text
from holdfast.transport.advice.contract import VERSION, WITHOUT_KEY
from holdfast.transport.documents.vocabulary import ACTIONS, error_codes
from holdfast.transport.plans import plan_document

_P, _C, _DONE, _DEAD, _GONE = tasks.PENDING, tasks.CLAIMED, tasks.COMPLETED, tasks.DEAD, tasks.CANCELLED
TRANSITIONS = (
    (None, _P, "create_task"),
    (_P, _C, "claim_task"),
    (_C, _C, "heartbeat"),
    (_C, _DONE, "complete_task"),
    (_C, _P, "fail_task"),
    (_C, _DEAD, "fail_task"),
    (_C, _P, "lease_expired"),
    (_C, _DEAD, "lease_expired"),
    (_C, _P, "release_task"),
    (_C, _P, "snooze_task"),
    (_P, _GONE, "cancel_task"),
    (_C, _GONE, "cancel_task"),
    (_DEAD, _P, "requeue_task"),
)
"""(from, to, cause)."""


def capabilities(settings: Settings) -> dict[str, Any]:
    """States, bounds, codes and limits that a client needs before its first request."""
    default_plan = settings.plans[settings.plan]
    return {
        "name": "Holdfast",
        "agent_contract_version": VERSION,
        "auth": {
            "scheme": "bearer",
            "header": "Authorization: Bearer <key>",
            "registration": {
                "method": "POST",
                "endpoint": "/v1/keys/register",
                "state": OPEN if settings.is_registration_open else CLOSED,
            },
            "without_key": WITHOUT_KEY,
            "scopes": SCOPES,
            "key_in_url": "refused",
        },
        "lifecycle": {
            "states": list(tasks.STATES),
            "terminal": sorted(tasks.FINAL_STATES),
            "transitions": [{"from": before, "to": after, "by": cause} for before, after, cause in TRANSITIONS],
        },
        "constraints": _constraints(),
        "error_codes": [msgspec.to_builtins(each) for each in error_codes()],
        "action_codes": [{"code": code, "meaning": ACTIONS[code]} for code in sorted(ACTIONS)],
        "operations": [
            {"name": operation.name, "method": operation.method, "endpoint": operation.path.replace("...", "")}
            for operation in OPERATIONS
        ],
        "rate_limits": _rate_limits(default_plan),
        "billing": {"given": default_plan.id, "plans": [plan_document(plan) for plan in settings.plans.values()]},
        untrusted_text.KEY: {"fields": sorted(untrusted_text.FIELDS), "rule": untrusted_text.RULE},
        "idempotency": {
            "header": "Idempotency-Key",
            "body_field": "idempotencyKey",
            "lifetime_seconds": KEEP_ANSWERS // 1_000_000,
        },
        "retention": {
            "tasks_days": default_plan.retention_days or settings.task_retention_days or None,
            "events_days": settings.event_retention_days or None,
            "dead_letters_purged": settings.purge_dead_letters,
        },
        "waiting": {"parameter": "wait_seconds", "max_seconds": bounds.WAIT.most},
    }


def _rate_limits(default_plan: Plan) -> list[dict[str, Any]]:
    by_account = [
        {"class": name, "limit": default_plan.per_hour(name), "window_seconds": bounds.HOUR, "keyed_by": "account"}
        for name in (CREATE, CLAIM, READ, MUTATION, HEARTBEAT)
    ]
    by_address = [
        {
            "class": name,
            "limit": rate.requests if default_plan.is_metered else None,
            "window_seconds": rate.seconds,
            "keyed_by": "address",
        }
        for name, rate in (
            (REGISTRATION, bounds.REGISTRATIONS_PER_ADDRESS),
            (DISCOVERY, bounds.DOCUMENTS_PER_ADDRESS),
        )
    ]
    return [*by_account, *by_address]


def _constraints() -> dict[str, Any]:
    return {
        "type": _length(bounds.TASK_TYPE) | {"pattern": "^[A-Za-z0-9_-]+$"},
        "payload": _json(bounds.TASK_PAYLOAD),
        "result": _json(bounds.TASK_PAYLOAD),
        "priority": _range(bounds.TASK_PRIORITY),
        "maxAttempts": _range(bounds.TASK_MAX_ATTEMPTS),
        "leaseDurationSeconds": _range(bounds.TASK_LEASE),
        "scheduledAt": {"format": "date-time", "max_days_ahead": bounds.TASK_DELAY.most // bounds.DAY},
        "retry_after_seconds": _range(bounds.TASK_DELAY),
        "reason": _length(bounds.REASON),
        "worker_id": _length(bounds.TASK_LABEL),
        "uniqueKey": _length(bounds.TASK_UNIQUE_KEY),
        "tag": _length(bounds.TASK_LABEL),
        "idempotencyKey": _length(bounds.IDEMPOTENCY_KEY),
        "requires": {"max": bounds.TASK_REQUIRES.most, "pattern": f"^{WORD.pattern}$"},
        "capabilities": {"max": bounds.CAPABILITIES.most, "pattern": f"^{WORD.pattern}$"},
        "claim_limit": _range(bounds.TASK_CLAIM_LIMIT),
        "claim_types": {"max": bounds.TASK_CLAIM_TYPES.most},
        "batch_items": {"min": bounds.BATCH_ITEMS.least, "max": bounds.BATCH_ITEMS.most},
        "wait_seconds": {"min": bounds.WAIT.least, "max": bounds.WAIT.most},
        "job_ttl_seconds": _range(bounds.JOB_TTL),
    }


def _range(bound: Range) -> dict[str, int]:
    default = {} if bound.if_omitted is None else {"default": bound.if_omitted}
    return {"min": bound.least, "max": bound.most, **default}


def _length(bound: Length) -> dict[str, Any]:
    return ({"min_length": bound.least} if bound.least else {}) | {"max_length": bound.most}


def _json(bound: JsonSize) -> dict[str, Any]:
    return {"type": "object", "max_bytes": bound.size, "max_depth": bound.depth}
