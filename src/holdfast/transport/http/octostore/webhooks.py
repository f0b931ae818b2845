"""OctoStore's `/webhooks`: events about a user's own locks."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.errors import Invalid
from holdfast.core.event import HIDDEN
from holdfast.core.names import is_storable
from holdfast.core.webhooks.destination import octostore_url_problem, parse_url
from holdfast.core.webhooks.webhook import ACTIVE, LEASE_SUBJECT, OCTOSTORE, OCTOSTORE_EVENTS, Webhook
from holdfast.engine.verbs.webhooks import RemoveWebhook
from holdfast.operations import bounds
from holdfast.transport.advice import locks as lock_advice
from holdfast.transport.http.api.webhooks import insert_webhook, read_webhooks
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import path_uuid, read_body
from holdfast.transport.http.request import Request, Response, json_response
from holdfast.transport.ids import ids
from holdfast.transport.times import rfc3339

_EVENTS = {*OCTOSTORE_EVENTS.values(), "*"}


class LockWebhookBody(msgspec.Struct):
    """Body of create_lock_webhook: the URL, and which locks and events to send."""

    url: str
    secret: str | None = None
    events: list[str] | None = None
    lock_pattern: str | None = None


async def create_lock_webhook(ctx: HandlerContext, request: Request) -> Response:
    """Create a webhook. Checks run in OctoStore's order: URL, events, then the number of webhooks."""
    body = await read_body(ctx, request, LockWebhookBody)
    await ctx.authenticate(request)
    if len(body.url) > bounds.WEBHOOK_URL.most:
        raise Invalid(f"url must have {bounds.WEBHOOK_URL}")
    target = parse_url(body.url)
    if isinstance(target, str):
        raise Invalid(f"url {target}")
    problem = octostore_url_problem(target, private=ctx.settings.webhook_allow_private_networks)
    if problem is not None:
        raise Invalid(problem)
    events = ["*"] if body.events is None else body.events
    if not _EVENTS.issuperset(events):
        raise Invalid(f"events must be some of {', '.join(sorted(_EVENTS))}")
    _check_texts(body)
    hook = Webhook(
        request.by.account,
        ids.uuid(),
        principal=request.by.id,
        family=OCTOSTORE,
        url=target.url,
        events=msgspec.json.encode(list(dict.fromkeys(events))).decode(),
        subject=None if body.lock_pattern is None else LEASE_SUBJECT + body.lock_pattern,
        secret=body.secret,
    )
    created = await insert_webhook(ctx, request.cause(), hook, bounds.LOCK_WEBHOOKS_PER_USER, own=True)
    return json_response(201, webhook_document(created) | {"agent_contract": lock_advice.listed()})


def _check_texts(body: LockWebhookBody) -> None:
    """Refuse a secret or pattern that is too long or cannot be stored."""
    for name, bound in (("secret", bounds.LOCK_WEBHOOK_SECRET), ("lock_pattern", bounds.LOCK_WEBHOOK_PATTERN)):
        text = getattr(body, name) or ""
        if len(text) > bound.most:
            raise Invalid(f"{name} must have {bound}")
        if not is_storable(text):
            raise Invalid(f"{name} must not contain U+0000")


async def list_lock_webhooks(ctx: HandlerContext, request: Request) -> Response:
    """The caller's webhooks."""
    await ctx.authenticate(request)
    account, mine = request.by.account, (OCTOSTORE, request.by.id)
    hooks = await ctx.read(lambda reader: read_webhooks(reader, account))
    return json_response(200, [webhook_document(hook) for hook in hooks if (hook.family, hook.principal) == mine])


async def delete_lock_webhook(ctx: HandlerContext, request: Request) -> Response:
    """Delete one of the caller's webhooks; those of other users are not found."""
    hook_id = path_uuid(request.parameter)
    await ctx.authenticate(request)
    command = RemoveWebhook(account=request.by.account, cause=request.cause(), hook_id=hook_id, principal=request.by.id)
    await ctx.run(command)
    return Response(204)


def webhook_document(hook: Webhook) -> dict[str, Any]:
    """A webhook as OctoStore shows it."""
    return {
        "id": hook.id,
        "user_id": hook.principal,
        "url": hook.url,
        "secret": None if hook.secret is None else HIDDEN,
        "events": msgspec.json.decode(hook.events),
        "lock_pattern": None if hook.subject is None else hook.subject.removeprefix(LEASE_SUBJECT),
        "created_at": rfc3339(hook.created_at),
        "active": hook.state == ACTIVE,
    }
