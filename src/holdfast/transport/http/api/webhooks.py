"""`/v1/webhooks`: be told of what happens, at an address of one's own. A secret is shown once and never again."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from holdfast.core.errors import Forbidden, Invalid, WebhookMissing
from holdfast.core.names import is_storable
from holdfast.core.row import SECOND
from holdfast.core.webhooks.destination import Target, parse_url, url_problem
from holdfast.core.webhooks.signature import SECRET_BYTES, format_secret
from holdfast.core.webhooks.webhook import ACTIVE, PAUSED, STANDARD, Webhook
from holdfast.engine.verbs.webhooks import CreateWebhook, RemoveWebhook, RotateWebhookSecret, UpdateWebhook
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import webhooks as webhook_advice
from holdfast.transport.advice.contract import check_state
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.bodies.query import NO_STORE
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response, raw_json, warned
from holdfast.transport.ids import ids
from holdfast.transport.times import rfc3339, rfc3339_or_none

EVENT_PATTERN = r"\*|[a-z_]{1,40}\.(\*|[a-z_]{1,40}\*?)"
AT_ONCE = 1_000

_EVENT = re.compile(EVENT_PATTERN)


class CreateBody(msgspec.Struct, forbid_unknown_fields=True):
    """Where to be told, and of what."""

    url: str
    events: list[str] | None = None
    subject: str | None = None


class UpdateBody(msgspec.Struct, forbid_unknown_fields=True):
    """What is to be different; an empty `subject` means: about everything."""

    url: str | None = None
    events: list[str] | None = None
    subject: str | None = None
    state: str | None = None


class RotateBody(msgspec.Struct, forbid_unknown_fields=True):
    """How long the old secret signs beside the new one."""

    grace_seconds: int = bounds.WEBHOOK_GRACE.default


async def create_webhook(ctx: HandlerContext, request: Request) -> Response:
    """A webhook that reads the log from now on."""
    await ctx.authenticate(request)
    _check_reach(request)
    body, warnings, _ = await read_body(request, CreateBody)
    checks = Checks()
    url = _url(ctx, checks, body.url)
    _filters(checks, body.events, body.subject)
    checks.raise_errors()
    hook = Webhook(
        request.by.account,
        f"whk_{ids.ulid()}",
        principal=request.by.id,
        url=url,
        events=msgspec.json.encode(body.events or ["*"]).decode(),
        subject=body.subject or None,
        secret=new_secret(),
    )
    made = await create(ctx, request, hook, bounds.WEBHOOKS_PER_ACCOUNT)
    return _shown_once(201, made, warnings)


async def list_webhooks(ctx: HandlerContext, request: Request) -> Response:
    """All of the account's, also those that were made by `/webhooks`."""
    await ctx.authenticate(request)
    account = request.by.account
    hooks = await ctx.read(lambda reader: hooks_of(reader, account))
    following = webhook_advice.listed(is_empty=not hooks)
    return json_response(200, {"webhooks": [document(hook) for hook in hooks], "agent_contract": following}, NO_STORE)


async def read_webhook(ctx: HandlerContext, request: Request) -> Response:
    """One of them, and how many of its deliveries are in each state."""
    await ctx.authenticate(request)
    hook = await find(ctx, request)
    counts = await ctx.use_store(lambda store: store.deliveries.counts((hook.account, hook.id)))
    return json_response(
        200, document(hook) | {"deliveries": counts, "agent_contract": webhook_advice.changed(hook.id)}, NO_STORE
    )


async def update_webhook(ctx: HandlerContext, request: Request) -> Response:
    """Another address or filter; a pause, and its end: then it goes on where it stopped."""
    await ctx.authenticate(request)
    _check_reach(request)
    body, warnings, _ = await read_body(request, UpdateBody)
    hook = await find(ctx, request)
    checks = Checks()
    url = None if body.url is None else _url(ctx, checks, body.url)
    _filters(checks, body.events, body.subject)
    checks.require(body.state in {None, ACTIVE, PAUSED}, "state", f"`state` is {ACTIVE} or {PAUSED}")
    for name in ("url", "events", "subject"):
        ours = hook.family == STANDARD or getattr(body, name) is None
        checks.require(ours, name, f"`{name}` of a webhook made by /webhooks is its owner's to choose")
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
        200, warned(document(after) | {"agent_contract": webhook_advice.changed(after.id)}, warnings), NO_STORE
    )


async def delete_webhook(ctx: HandlerContext, request: Request) -> Response:
    """It is gone, with all that was on its way to it."""
    await ctx.authenticate(request)
    hook = await find(ctx, request)
    await ctx.run(RemoveWebhook(account=hook.account, cause=request.cause(), hook_id=hook.id))
    following = check_state("list_webhooks")
    return json_response(200, {"webhook_id": hook.id, "deleted": True, "agent_contract": following})


async def rotate_webhook_secret(ctx: HandlerContext, request: Request) -> Response:
    """A new secret; for a while every message carries both signatures."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, RotateBody)
    hook = await find(ctx, request)
    checks = Checks()
    checks.check_range(body.grace_seconds, "grace_seconds", bounds.WEBHOOK_GRACE)
    checks.raise_errors()
    if hook.family != STANDARD:
        raise Invalid("the secret of a webhook made by /webhooks is its owner's to choose")
    rotate = RotateWebhookSecret(
        account=hook.account,
        cause=request.cause(),
        hook_id=hook.id,
        secret=new_secret(),
        grace=body.grace_seconds * SECOND,
    )
    return _shown_once(200, await ctx.run(rotate), warnings)


# -- what both families share ------------------------------------------------------------------------------------


async def create(ctx: HandlerContext, request: Request, hook: Webhook, limit: int, *, own: bool = False) -> Webhook:
    """Make it, unless there are too many: of the account, or with `own` of its maker."""
    command = CreateWebhook(
        account=hook.account, cause=request.cause(), hook_id=hook.id, hook=hook, limit=limit, own=own
    )
    made = await ctx.run(command)
    ctx.on_webhook()
    return made


async def find(ctx: HandlerContext, request: Request) -> Webhook:
    """The webhook in the path, if it is the account's."""
    account, hook_id = request.by.account, request.parameter
    found = await ctx.read(lambda reader: reader.row(Webhook, account, hook_id)) if is_storable(hook_id) else None
    if found is None:
        raise WebhookMissing("there is no such webhook")
    return found


def hooks_of(reader: Reader, account: str) -> list[Webhook]:
    """Every webhook of an account."""
    found: list[Webhook] = []
    after = ""
    while True:
        page = reader.rows_after(Webhook, account, after, AT_ONCE)
        own = [hook for hook in page if hook.account == account]
        found += own
        if len(own) < AT_ONCE:
            return found
        after = own[-1].id


def document(hook: Webhook) -> dict[str, Any]:
    """A webhook as its account sees it: never its secret."""
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
    """A secret that nobody has."""
    return format_secret((ids.draw() + ids.draw())[:SECRET_BYTES])


def _shown_once(status: int, hook: Webhook, warnings: list[str]) -> Response:
    shown: dict[str, Any] = {"secret": hook.secret, **document(hook), "agent_contract": webhook_advice.changed(hook.id)}
    return json_response(status, warned(shown, warnings), NO_STORE)


def _check_reach(request: Request) -> None:
    """Nobody is told by webhook of what their key would not be shown: webhooks hear of every name."""
    within = request.by.name_prefix
    if within is not None:
        raise Forbidden(f"your key covers only names that begin with {within}, and webhooks hear of all")


def _url(ctx: HandlerContext, checks: Checks, text: str) -> str:
    checks.check_text(text, "url", bounds.WEBHOOK_URL)
    target = parse_url(text)
    if isinstance(target, Target):
        problem = url_problem(target, private=ctx.settings.webhook_allow_private_networks)
        checks.require(problem is None, "url", f"`url` {problem}")
        return target.url
    checks.require(False, "url", f"`url` {target}")  # noqa: FBT003 - it does not hold
    return ""


def _filters(checks: Checks, events: list[str] | None, subject: str | None) -> None:
    allowed = len(events or ()) <= bounds.WEBHOOK_EVENTS.most
    checks.require(allowed, "events", f"`events` must have {bounds.WEBHOOK_EVENTS}")
    known = all(_EVENT.fullmatch(kind) for kind in events or ())
    checks.require(known, "events", "`events` holds kinds like task.completed, lease.* or *")
    checks.check_text(subject, "subject", bounds.QUERY_TEXT)
