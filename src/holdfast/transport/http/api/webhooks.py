"""`/v1/webhooks`: send the account's events to a URL. A secret is shown only when it is created."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from holdfast.core.errors import Invalid, WebhookMissing
from holdfast.core.event import Cause
from holdfast.core.names import is_storable
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND
from holdfast.core.webhooks.destination import Target, parse_url, url_problem
from holdfast.core.webhooks.signature import SECRET_BYTES, format_secret
from holdfast.core.webhooks.webhook import ACTIVE, PAUSED, STANDARD, Webhook
from holdfast.engine.verbs.webhooks import CreateWebhook, RemoveWebhook, RotateWebhookSecret, UpdateWebhook
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import webhooks as webhook_advice
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.bodies.query import NO_STORE
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response, raw_json, with_warnings
from holdfast.transport.ids import ids
from holdfast.transport.times import rfc3339, rfc3339_or_none

EVENT_PATTERN = r"\*|[a-z_]{1,40}\.(\*|[a-z_]{1,40}\*?)"
PAGE_SIZE = 1_000

_EVENT = re.compile(EVENT_PATTERN)


class CreateBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of create_webhook: the URL and which events to send."""

    url: str
    events: list[str] | None = None
    subject: str | None = None


class UpdateBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of update_webhook: the fields to change; an empty `subject` means every subject."""

    url: str | None = None
    events: list[str] | None = None
    subject: str | None = None
    state: str | None = None


class RotateBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of rotate_webhook_secret: how long messages are also signed with the old secret."""

    grace_seconds: int = bounds.WEBHOOK_GRACE.default


async def create_webhook(ctx: HandlerContext, request: Request) -> Response:
    """Create a webhook for events from now on."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, CreateBody)
    created = await make(ctx, request.by, request.cause(), body)
    return _response_with_secret(201, created, warnings)


async def make(ctx: HandlerContext, by: Principal, cause: Cause, body: CreateBody) -> Webhook:
    """Create a webhook of the account of `by`."""
    checks = Checks()
    url = _parse_url(ctx, checks, body.url)
    _check_filters(checks, body.events, body.subject)
    checks.raise_errors()
    hook = Webhook(
        by.account,
        f"whk_{ids.ulid()}",
        principal=by.id,
        url=url,
        events=msgspec.json.encode(body.events or ["*"]).decode(),
        subject=body.subject or None,
        secret=new_secret(),
    )
    return await insert_webhook(ctx, cause, hook, bounds.WEBHOOKS_PER_ACCOUNT)


async def list_webhooks(ctx: HandlerContext, request: Request) -> Response:
    """All webhooks of the account, including those created by `/webhooks`."""
    await ctx.authenticate(request)
    account = request.by.account
    hooks = await ctx.read(lambda reader: read_webhooks(reader, account))
    return json_response(
        200,
        {"webhooks": [webhook_document(hook) for hook in hooks], "agent_contract": webhook_advice.listed()},
        NO_STORE,
    )


async def read_webhook(ctx: HandlerContext, request: Request) -> Response:
    """A webhook, and how many of its deliveries are in each state."""
    await ctx.authenticate(request)
    hook = await find_webhook(ctx, request)
    counts = await ctx.use_store(lambda store: store.deliveries.counts((hook.account, hook.id)))
    return json_response(
        200,
        webhook_document(hook) | {"deliveries": counts, "agent_contract": webhook_advice.changed(hook.id)},
        NO_STORE,
    )


async def update_webhook(ctx: HandlerContext, request: Request) -> Response:
    """Change the URL or filter, pause, or resume; a resumed webhook continues where it stopped."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, UpdateBody)
    hook = await find_webhook(ctx, request)
    checks = Checks()
    url = None if body.url is None else _parse_url(ctx, checks, body.url)
    _check_filters(checks, body.events, body.subject)
    checks.require(body.state in {None, ACTIVE, PAUSED}, "state", f"`state` must be {ACTIVE} or {PAUSED}")
    for name in ("url", "events", "subject"):
        ours = hook.family == STANDARD or getattr(body, name) is None
        checks.require(ours, name, f"`{name}` of a webhook created by /webhooks cannot be changed here")
    checks.raise_errors()
    command = UpdateWebhook(
        account=hook.account,
        cause=request.cause(),
        hook_id=hook.id,
        url=url,
        events=None if body.events is None else msgspec.json.encode(body.events or ["*"]).decode(),
        subject=body.subject,
        state=body.state,
        reason="by request",
    )
    after = await ctx.run(command)
    if after.state == ACTIVE and (hook.url, hook.state) != (after.url, after.state):
        await ctx.use_store(lambda store: store.deliveries.retry_now((hook.account, hook.id)))
    ctx.on_webhook()
    return json_response(
        200,
        with_warnings(webhook_document(after) | {"agent_contract": webhook_advice.changed(after.id)}, warnings),
        NO_STORE,
    )


async def delete_webhook(ctx: HandlerContext, request: Request) -> Response:
    """Delete a webhook and its pending deliveries."""
    await ctx.authenticate(request)
    hook = await find_webhook(ctx, request)
    await ctx.run(RemoveWebhook(account=hook.account, cause=request.cause(), hook_id=hook.id))
    return json_response(200, {"webhook_id": hook.id, "deleted": True, "agent_contract": webhook_advice.deleted()})


async def rotate_webhook_secret(ctx: HandlerContext, request: Request) -> Response:
    """Create a new secret; for a while every message has both signatures."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, RotateBody)
    hook = await find_webhook(ctx, request)
    checks = Checks()
    checks.check_range(body.grace_seconds, "grace_seconds", bounds.WEBHOOK_GRACE)
    checks.raise_errors()
    if hook.family != STANDARD:
        raise Invalid("the secret of a webhook created by /webhooks cannot be rotated")
    rotate = RotateWebhookSecret(
        account=hook.account,
        cause=request.cause(),
        hook_id=hook.id,
        secret=new_secret(),
        grace=body.grace_seconds * SECOND,
    )
    return _response_with_secret(200, await ctx.run(rotate), warnings)


# -- shared with OctoStore's webhooks ---------------------------------------------------------------------------


async def insert_webhook(ctx: HandlerContext, cause: Cause, hook: Webhook, limit: int, *, own: bool = False) -> Webhook:
    """Create a webhook. Refused if the account has `limit` of them; with `own`, if its creator has."""
    command = CreateWebhook(account=hook.account, cause=cause, hook_id=hook.id, hook=hook, limit=limit, own=own)
    created = await ctx.run(command)
    ctx.on_webhook()
    return created


async def find_webhook(ctx: HandlerContext, request: Request) -> Webhook:
    """The webhook in the path, if it belongs to the account."""
    account, hook_id = request.by.account, request.parameter
    found = await ctx.read(lambda reader: reader.row(Webhook, account, hook_id)) if is_storable(hook_id) else None
    if found is None:
        raise WebhookMissing("there is no such webhook")
    return found


def read_webhooks(reader: Reader, account: str) -> list[Webhook]:
    """Every webhook of an account."""
    found: list[Webhook] = []
    after = ""
    while True:
        page = reader.rows_after(Webhook, account, after, PAGE_SIZE)
        own = [hook for hook in page if hook.account == account]
        found += own
        if len(own) < PAGE_SIZE:
            return found
        after = own[-1].id


def webhook_document(hook: Webhook) -> dict[str, Any]:
    """A webhook without its secret."""
    return {
        "webhook_id": hook.id,
        "family": hook.family,
        "url": hook.url,
        "events": raw_json(hook.events),
        "subject": hook.subject,
        "state": hook.state,
        "reason": hook.reason,
        "old_secret_until": rfc3339_or_none(hook.old_until),
        "created_by": hook.principal,
        "created_at": rfc3339(hook.created_at),
    }


def new_secret() -> str:
    """A new random secret."""
    return format_secret((ids.draw() + ids.draw())[:SECRET_BYTES])


def _response_with_secret(status: int, hook: Webhook, warnings: list[str]) -> Response:
    document: dict[str, Any] = {
        "secret": hook.secret,
        **webhook_document(hook),
        "agent_contract": webhook_advice.changed(hook.id),
    }
    return json_response(status, with_warnings(document, warnings), NO_STORE)


def _parse_url(ctx: HandlerContext, checks: Checks, text: str) -> str:
    checks.check_text(text, "url", bounds.WEBHOOK_URL)
    target = parse_url(text)
    if isinstance(target, Target):
        problem = url_problem(target, private=ctx.settings.webhook_allow_private_networks)
        checks.require(problem is None, "url", f"`url` {problem}")
        return target.url
    checks.add("url", f"`url` {target}")
    return ""


def _check_filters(checks: Checks, events: list[str] | None, subject: str | None) -> None:
    allowed = len(events or ()) <= bounds.WEBHOOK_EVENTS.most
    checks.require(allowed, "events", f"`events` must have {bounds.WEBHOOK_EVENTS}")
    known = all(_EVENT.fullmatch(kind) for kind in events or ())
    checks.require(known, "events", "`events` must contain kinds like task.completed, lease.* or *")
    checks.check_text(subject, "subject", bounds.QUERY_TEXT)
