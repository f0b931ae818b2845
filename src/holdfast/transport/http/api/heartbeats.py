"""`POST /v1/heartbeats`: renew many leases in one request and one transaction, each with its own outcome."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.errors import DamagedRow, Forbidden, Invalid, Refused, ReservationMissing, TaskMissing
from holdfast.core.lease import Lease
from holdfast.core.names import is_storable, job_id_problem, normal_job_id
from holdfast.core.plan import HEARTBEAT
from holdfast.core.prefix_rule import COVERED, NAMED, WHOLE, check_prefix
from holdfast.core.reservation.row import Reservation
from holdfast.core.task import Handover, Task
from holdfast.engine.command import Command, LeaseOutcome
from holdfast.engine.verbs.batch import Batch, FailedItem
from holdfast.engine.verbs.jobs import HeartbeatJob
from holdfast.engine.verbs.reservations import HeartbeatReservation, ReservationOutcome
from holdfast.engine.verbs.tasks.base import TaskOutcome
from holdfast.engine.verbs.tasks.holding import HeartbeatTask
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import jobs as job_advice
from holdfast.transport.advice.contract import seconds_left
from holdfast.transport.deadlines import heartbeat_seconds
from holdfast.transport.http.api.errors import code_and_message, error_facts, status_of
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import parse_uuid
from holdfast.transport.http.overload.large_work import run_sized
from holdfast.transport.http.request import Request, Response, json_response, with_warnings


class HeldLease(msgspec.Struct):
    """A lease to renew: a job's, a task's or a reservation's, with its proof and a note for the next holder."""

    lease_id: str
    job_id: str | None = None
    task_id: str | None = None
    reservation_id: str | None = None
    note: str | None = None


class HeartbeatsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of heartbeat_leases."""

    leases: list[HeldLease]


async def heartbeat_leases(ctx: HandlerContext, request: Request) -> Response:
    """Renew many leases. There is no Idempotency-Key: sent again, it renews again."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, HeartbeatsBody, bounds.BATCH_BODY_BYTES)
    checks = Checks()
    number, allowed = len(body.leases), bounds.HEARTBEAT_LEASES
    checks.require(allowed.least <= number <= allowed.most, "leases", f"`leases` must have {allowed}, not {number}")
    checks.raise_errors()
    hidden = await _hidden_reservations(ctx, request, body.leases)
    commands = await run_sized(len(raw), lambda: [_command_or_refusal(request, lease, hidden) for lease in body.leases])
    valid = tuple(command for command in commands if isinstance(command, Command))
    await ctx.charge(request, HEARTBEAT, len(valid))
    outcome = await ctx.run(Batch(account=request.by.account, cause=request.cause(), items=valid))
    return await run_sized(len(raw), lambda: _render(warnings, commands, outcome.each))


async def _hidden_reservations(ctx: HandlerContext, request: Request, leases: list[HeldLease]) -> set[str]:
    """Ids of reservations whose spaces the key does not cover: for its caller they do not exist."""
    by = request.by
    named = {lease.reservation_id for lease in leases if lease.reservation_id is not None}
    if by.name_prefix is None or not named:
        return set()

    def is_hidden(reader: Reader, text: str) -> bool:
        reservation_id = parse_uuid(text)
        try:
            row = None if reservation_id is None else reader.row(Reservation, by.account, reservation_id)
        except DamagedRow:  # the renewal reports it
            return False
        return row is not None and not by.covers(row.space)

    return await ctx.read(lambda reader: {text for text in named if is_hidden(reader, text)})


def _command_or_refusal(request: Request, lease: HeldLease, hidden: set[str]) -> Command[Any] | Refused:
    try:
        return _command(request, lease, hidden)
    except Refused as refusal:
        return refusal


def _command(request: Request, lease: HeldLease, hidden: set[str]) -> Command[Any]:
    """The command that renews a lease as its own operation would: with the same scope, prefix rule and checks."""
    checks = Checks()
    names = [name for name in (lease.job_id, lease.task_id, lease.reservation_id) if name is not None]
    checks.require(len(names) == 1, "job_id", "a lease has one of `job_id`, `task_id` and `reservation_id`")
    lease_id = parse_uuid(lease.lease_id)
    checks.require(lease_id is not None, "lease_id", "`lease_id` must be the UUID from the answer to the claim")
    checks.check_text(lease.note, "note", bounds.NOTE)
    checks.require(lease.note is None or lease.reservation_id is None, "note", "a reservation has no `note`")
    checks.raise_errors()
    common: dict[str, Any] = {"account": request.by.account, "cause": request.cause(), "lease_id": lease_id or ""}
    if lease.job_id is not None:
        job_id = normal_job_id(lease.job_id)
        _check_access(request, "jobs", NAMED, job_id)
        problem = job_id_problem(job_id)
        if problem is not None:
            raise Invalid(problem, [{"pointer": "/job_id", "code": "invalid_job_id", "message": problem}])
        return HeartbeatJob(**common, name=job_id, note=lease.note)
    if lease.reservation_id is not None:
        _check_access(request, "jobs", COVERED, "")
        reservation_id = None if lease.reservation_id in hidden else parse_uuid(lease.reservation_id)
        if reservation_id is None:
            raise ReservationMissing("there is no such reservation")
        return HeartbeatReservation(**common, reservation_id=reservation_id)
    _check_access(request, "tasks:work", WHOLE, "")
    if not is_storable(lease.task_id or ""):  # such an id cannot exist, and not every store accepts it in a query
        raise TaskMissing("there is no such task")
    return HeartbeatTask(**common, task_id=lease.task_id or "", handover=Handover(note=lease.note))


def _check_access(request: Request, scope: str, rule: str, name: str) -> None:
    if not request.by.may(scope):
        raise Forbidden(f"this key lacks the scope {scope}", scope=scope)
    check_prefix(request.by, rule, name)


def _render(warnings: list[str], commands: list[Command[Any] | Refused], outcomes: tuple[Any, ...]) -> Response:
    found = iter(outcomes)
    results = [_result(command if isinstance(command, Refused) else next(found)) for command in commands]
    succeeded = sum(result["status"] == 200 for result in results)
    document: dict[str, Any] = {"results": results, "succeeded": succeeded, "failed": len(results) - succeeded}
    document["agent_contract"] = job_advice.several_renewed(all_held=succeeded == len(results))
    return json_response(200, with_warnings(document, warnings))


def _result(outcome: LeaseOutcome | TaskOutcome | ReservationOutcome | FailedItem) -> dict[str, Any]:
    """The result of one lease: how long it lasts now and how often to renew it, or the error."""
    if isinstance(outcome, FailedItem):
        status = status_of(outcome)
        code, message = code_and_message(outcome, status)
        return {"status": status, "error": code, "message": message, **error_facts(outcome)}
    row = _renewed(outcome)
    result: dict[str, Any] = {
        "status": 200,
        "expires_in_seconds": seconds_left(row.expires_at, outcome.now),
        "heartbeat_every_seconds": heartbeat_seconds(row, outcome.now),
    }
    if isinstance(row, Task):
        result["cancel_requested"] = row.cancel_requested
    return result


def _renewed(outcome: LeaseOutcome | TaskOutcome | ReservationOutcome) -> Lease | Task | Reservation:
    if isinstance(outcome, LeaseOutcome):
        return outcome.lease
    return outcome.task if isinstance(outcome, TaskOutcome) else outcome.row
