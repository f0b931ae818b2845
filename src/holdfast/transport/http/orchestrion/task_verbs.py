"""Handlers of the task verbs: heartbeat, complete, fail, release, snooze, cancel, requeue, resolve."""

from __future__ import annotations

import functools
import random
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from holdfast.core.account import requires_lease_id
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import Handover
from holdfast.core.task.retry import Backoff, default_backoff
from holdfast.engine.verbs.tasks.base import TaskCommand, TaskOutcome
from holdfast.engine.verbs.tasks.cancelling import CancelTask, RequeueTask, ResolveTask
from holdfast.engine.verbs.tasks.holding import CompleteTask, FailTask, HeartbeatTask, ReleaseTask
from holdfast.operations import bounds
from holdfast.transport.advice import questions as question_advice
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.http.bodies.acting_session import check_acting_session
from holdfast.transport.http.bodies.checks import NOTHING, Checks
from holdfast.transport.http.bodies.idempotency import read_task_idempotency_key
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.orchestrion.documents import task_document
from holdfast.transport.http.overload.large_work import run_sized
from holdfast.transport.http.request import Request, Response, answer, encode, with_warnings


class HolderBody(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of every write by a holder: its proof, and note, checkpoint and progress."""

    lease_id: str | None = None
    fencing_token: int | None = None
    worker_id: str | None = None
    note: str | None = None
    checkpoint: msgspec.Raw = NOTHING
    progress: msgspec.Raw = NOTHING
    session_id: str | None = None
    session_lease_id: str | None = None


class CompleteBody(HolderBody, forbid_unknown_fields=True):
    """Body of complete."""

    result: msgspec.Raw = NOTHING
    output_id: str | None = None


class FailBody(HolderBody, forbid_unknown_fields=True):
    """Body of fail."""

    reason: str | None = None
    error_code: str | None = None
    retry_after_seconds: int | None = None
    permanent: bool = False


class ReleaseBody(HolderBody, forbid_unknown_fields=True):
    """Body of release."""

    delay_seconds: int | None = None


class SnoozeBody(HolderBody, forbid_unknown_fields=True, kw_only=True):
    """Body of snooze."""

    seconds: int


class CancelBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of cancel."""

    mode: Literal["pending", "request", "force"] = "pending"
    reason: str | None = None


class RequeueBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of requeue."""

    reset_attempts: bool = True


class NoBody(msgspec.Struct, forbid_unknown_fields=True):
    """An empty body."""


Fields = dict[str, Any]
Handler = Callable[[HandlerContext, Request], Awaitable[Response]]


def heartbeat_fields(body: HolderBody, checks: Checks) -> Fields:
    """Command fields of heartbeat, and the proof of every write by a holder."""
    checks.check_text(body.lease_id, "lease_id", bounds.TASK_LABEL)
    checks.check_text(body.worker_id, "worker_id", bounds.TASK_LABEL)
    checks.check_text(body.note, "note", bounds.NOTE)
    handover = Handover(
        note=body.note,
        checkpoint=checks.compact_json(body.checkpoint, "checkpoint", bounds.CHECKPOINT),
        progress=checks.compact_json(body.progress, "progress", bounds.PROGRESS),
    )
    return {
        "lease_id": body.lease_id,
        "token": body.fencing_token,
        "worker": body.worker_id,
        "handover": handover,
    }


def complete_fields(body: CompleteBody, checks: Checks) -> Fields:
    """Command fields of complete."""
    result = checks.compact_object(body.result, "result", bounds.TASK_PAYLOAD)
    checks.check_text(body.output_id, "output_id", bounds.TASK_LABEL)
    return {**heartbeat_fields(body, checks), "result": result, "output_id": body.output_id}


def fail_fields(body: FailBody, checks: Checks) -> Fields:
    """Command fields of fail."""
    checks.check_text(body.reason, "reason", bounds.REASON)
    checks.check_text(body.error_code, "error_code", bounds.TASK_ERROR_CODE)
    return {
        **heartbeat_fields(body, checks),
        "reason": body.reason,
        "code": body.error_code,
        "after": _delay(body.retry_after_seconds, "retry_after_seconds", checks),
        "permanent": body.permanent,
        "random_fraction": random.random(),
    }


def release_fields(body: ReleaseBody, checks: Checks) -> Fields:
    """Command fields of release."""
    after = _delay(body.delay_seconds, "delay_seconds", checks)
    return {**heartbeat_fields(body, checks), "outcome": "released", "after": after}


def snooze_fields(body: SnoozeBody, checks: Checks) -> Fields:
    """Command fields of snooze."""
    return {**heartbeat_fields(body, checks), "outcome": "snoozed", "after": _delay(body.seconds, "seconds", checks)}


def cancel_fields(body: CancelBody, checks: Checks) -> Fields:
    """Command fields of cancel."""
    checks.check_text(body.reason, "reason", bounds.REASON)
    return {"mode": body.mode, "reason": body.reason}


def requeue_fields(body: RequeueBody, _: Checks) -> Fields:
    """Command fields of requeue."""
    return {"keep_count": not body.reset_attempts}


def resolve_fields(_: NoBody, __: Checks) -> Fields:
    """Command fields of resolve."""
    return {}


def _delay(seconds: int | None, field: str, checks: Checks) -> Instant | None:
    checks.check_range(seconds, field, bounds.TASK_DELAY)
    return None if seconds is None else seconds * SECOND


VERBS: dict[str, tuple[type[TaskCommand], type[msgspec.Struct], Any]] = {
    "heartbeat": (HeartbeatTask, HolderBody, heartbeat_fields),
    "complete": (CompleteTask, CompleteBody, complete_fields),
    "fail": (FailTask, FailBody, fail_fields),
    "release": (ReleaseTask, ReleaseBody, release_fields),
    "snooze": (ReleaseTask, SnoozeBody, snooze_fields),
    "cancel": (CancelTask, CancelBody, cancel_fields),
    "requeue": (RequeueTask, RequeueBody, requeue_fields),
    "resolve": (ResolveTask, NoBody, resolve_fields),
}
"""Each verb: its command, its body, and the function that turns the body into command fields."""

_OWN_ADVICE = {
    "release": task_advice.returned,
    "snooze": task_advice.returned,
    "resolve": task_advice.resolved,
    "ask": question_advice.asked,
}

HOLDERS = frozenset({"heartbeat", "complete", "fail", "release", "snooze"})


class Rules(msgspec.Struct, frozen=True):
    """What the account and the server add to the verbs of holders."""

    needs_lease_id: bool
    default_backoff: Backoff


async def rules_of(ctx: HandlerContext, request: Request) -> Rules:
    """The rules for the caller's account."""
    settings = ctx.settings
    return Rules(
        requires_lease_id(await ctx.access.accounts.get(request.by.account)),
        default_backoff(settings.retry_base_seconds, settings.retry_max_seconds),
    )


def fields_of(request: Request, verb: str, body: msgspec.Struct, task_id: str, rules: Rules | None) -> Fields:
    """All fields of a verb's command except its idempotency key; the verbs of holders need `rules`."""
    checks = Checks()
    fields: Fields = VERBS[verb][2](body, checks)
    if isinstance(body, HolderBody):
        fields["session"] = check_acting_session(checks, request, body)
    checks.raise_errors()
    fields |= {"account": request.by.account, "cause": request.cause(), "task_id": task_id}
    if verb in HOLDERS and rules is not None:
        fields["needs_lease_id"] = rules.needs_lease_id
        if verb == "fail":
            fields["default_backoff"] = rules.default_backoff
    return fields


def _handler(verb: str, name: str) -> Handler:
    """The handler of a verb; handlers differ only in their row of VERBS."""
    command, body_type, _ = VERBS[verb]

    async def handle(ctx: HandlerContext, request: Request) -> Response:
        await ctx.authenticate(request)
        body, warnings, raw = await read_body(request, body_type)
        rules = await rules_of(ctx, request) if verb in HOLDERS else None
        render = functools.partial(render_task, warnings, verb=verb)

        def make_command() -> TaskCommand:
            fields = fields_of(request, verb, body, request.parameter, rules)
            return command(**fields, once=read_task_idempotency_key(request, raw, render, per_caller=True))

        return answer(await ctx.run_idempotent(await run_sized(len(raw), make_command)), render)

    handle.__name__ = name
    return handle


def render_task(warnings: list[str], outcome: TaskOutcome, *, verb: str = "") -> tuple[int, bytes]:
    """Status and body of the answer to a verb. Verbs that Orchestrion does not have give advice of their own."""
    advise = _OWN_ADVICE.get(verb)
    advice = None if advise is None else advise(outcome.task.id)
    return 200, encode(with_warnings(task_document(outcome.task, outcome.now, advice), warnings))


heartbeat = _handler("heartbeat", "heartbeat")
complete_task = _handler("complete", "complete_task")
fail_task = _handler("fail", "fail_task")
release_task = _handler("release", "release_task")
snooze_task = _handler("snooze", "snooze_task")
cancel_task = _handler("cancel", "cancel_task")
requeue_task = _handler("requeue", "requeue_task")
resolve_task = _handler("resolve", "resolve_task")
