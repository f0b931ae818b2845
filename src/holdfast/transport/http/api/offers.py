"""Offers of jobs, reservations and tasks: the holder gets a code, and whoever claims with it takes over."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from holdfast.core.row import SECOND
from holdfast.core.task import Handover
from holdfast.engine.verbs.job_offers import OfferJob, WithdrawJobOffer
from holdfast.engine.verbs.reservation_offers import OfferReservation, WithdrawReservationOffer
from holdfast.engine.verbs.tasks.offers import OfferTask, WithdrawTaskOffer
from holdfast.operations import bounds
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.advice.contract import seconds_left
from holdfast.transport.http.api.job_documents import render_offered, render_withdrawn
from holdfast.transport.http.api.jobs import check_job_id, common_fields
from holdfast.transport.http.api.reservations import documents as reservation_documents
from holdfast.transport.http.api.reservations.parsing import base_fields, check_lease_id, find_reservation
from holdfast.transport.http.bodies.checks import NOTHING, Checks
from holdfast.transport.http.bodies.idempotency import read_task_idempotency_key
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import parse_uuid
from holdfast.transport.http.orchestrion.documents import task_document
from holdfast.transport.http.orchestrion.task_verbs import render_task
from holdfast.transport.http.request import Request, Response, answer, json_response, with_warnings
from holdfast.transport.ids import ids


class OfferBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of offer_job, offer_reservation and offer_task."""

    lease_id: str
    note: str | None = None
    checkpoint: msgspec.Raw = NOTHING
    expires_in_seconds: int = bounds.OFFER_LIFETIME.default
    to: str | None = None


class WithdrawBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of withdraw_job_offer, withdraw_reservation_offer and withdraw_task_offer."""

    lease_id: str


def new_code() -> str:
    """A new random code of 192 bits."""
    return "hfo_" + (ids.draw() + ids.draw())[:24].hex()


async def offer_job(ctx: HandlerContext, request: Request) -> Response:
    """Offer a job. The answer shows the code, so it is not stored under an Idempotency-Key."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, OfferBody)
    checks = check_job_id(request)
    lease_id = _job_lease_id(checks, body)
    terms = _terms(checks, body)
    note, checkpoint = _left(checks, body)
    checks.raise_errors()
    command = OfferJob(
        account=request.by.account,
        cause=request.cause(),
        name=request.parameter,
        lease_id=lease_id,
        note=note,
        checkpoint=checkpoint,
        **terms,
    )
    return answer(await ctx.run(command), functools.partial(render_offered, warnings, command.code))


async def withdraw_job_offer(ctx: HandlerContext, request: Request) -> Response:
    """Withdraw the offer of a job."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, WithdrawBody)
    checks = check_job_id(request)
    lease_id = _job_lease_id(checks, body)
    checks.raise_errors()
    render = functools.partial(render_withdrawn, warnings)
    command = WithdrawJobOffer(**common_fields(request, raw, render), lease_id=lease_id)
    return answer(await ctx.run(command), render)


async def offer_reservation(ctx: HandlerContext, request: Request) -> Response:
    """Offer a reservation. The answer shows the code, so it is not stored under an Idempotency-Key."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, OfferBody)
    checks = Checks()
    lease_id = check_lease_id(checks, body.lease_id)
    terms = _terms(checks, body)
    note, checkpoint = _left(checks, body)
    checks.raise_errors()
    row = await find_reservation(ctx, request)
    command = OfferReservation(
        account=request.by.account,
        cause=request.cause(),
        reservation_id=row.id,
        lease_id=lease_id,
        note=note,
        checkpoint=checkpoint,
        **terms,
    )
    return answer(
        await ctx.run(command), functools.partial(reservation_documents.render_offered, warnings, command.code)
    )


async def withdraw_reservation_offer(ctx: HandlerContext, request: Request) -> Response:
    """Withdraw the offer of a reservation."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, WithdrawBody)
    checks = Checks()
    lease_id = check_lease_id(checks, body.lease_id)
    checks.raise_errors()
    row = await find_reservation(ctx, request)
    render = functools.partial(reservation_documents.render_released, warnings)
    command = WithdrawReservationOffer(**base_fields(request, raw, render), reservation_id=row.id, lease_id=lease_id)
    return answer(await ctx.run(command), render)


async def offer_task(ctx: HandlerContext, request: Request) -> Response:
    """Offer a task. The answer shows the code, so it is not stored under an idempotency key."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, OfferBody)
    checks = Checks()
    checks.check_text(body.lease_id, "lease_id", bounds.TASK_LABEL)
    terms = _terms(checks, body)
    note, checkpoint = _left(checks, body)
    checks.raise_errors()
    command = OfferTask(
        account=request.by.account,
        cause=request.cause(),
        task_id=request.parameter,
        lease_id=body.lease_id,
        handover=Handover(note=note, checkpoint=checkpoint),
        **terms,
    )
    outcome = await ctx.run(command)
    advice = task_advice.offered(outcome.task.id, seconds_left(outcome.task.expires_at, outcome.now))
    document = task_document(outcome.task, outcome.now, advice) | {"offer": command.code}
    return json_response(200, with_warnings(document, warnings))


async def withdraw_task_offer(ctx: HandlerContext, request: Request) -> Response:
    """Withdraw the offer of a task."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, WithdrawBody)
    checks = Checks()
    checks.check_text(body.lease_id, "lease_id", bounds.TASK_LABEL)
    checks.raise_errors()
    render = functools.partial(render_task, warnings)
    command = WithdrawTaskOffer(
        account=request.by.account,
        cause=request.cause(),
        once=read_task_idempotency_key(request, raw, render, per_caller=True),
        task_id=request.parameter,
        lease_id=body.lease_id,
    )
    return answer(await ctx.run_idempotent(command), render)


def _job_lease_id(checks: Checks, body: OfferBody | WithdrawBody) -> str:
    lease_id = parse_uuid(body.lease_id)
    checks.require(lease_id is not None, "lease_id", "`lease_id` must be the UUID from the answer to the claim")
    return lease_id or ""


def _terms(checks: Checks, body: OfferBody) -> dict[str, Any]:
    """The code of the offer, how long it lasts, and for whom it is."""
    checks.check_range(body.expires_in_seconds, "expires_in_seconds", bounds.OFFER_LIFETIME)
    checks.require(body.to != "", "to", "`to` must be the name of a session; omit it for an offer to anybody")
    checks.check_text(body.to, "to", bounds.SESSION_NAME)
    return {"code": new_code(), "lasts": body.expires_in_seconds * SECOND, "to": body.to}


def _left(checks: Checks, body: OfferBody) -> tuple[str | None, str | None]:
    """The note and the checkpoint for the taker."""
    checks.check_text(body.note, "note", bounds.NOTE)
    return body.note, checks.compact_json(body.checkpoint, "checkpoint", bounds.CHECKPOINT)
