"""Deliveries of a webhook: list them, replay them, or send a test message."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import msgspec

from holdfast.core.errors import WebhookMissing
from holdfast.core.log_gap import check_cursor
from holdfast.core.page import PAGE_BYTES, cut
from holdfast.core.webhooks.delivery import PENDING, STATES, Delivery
from holdfast.operations import bounds
from holdfast.transport.advice import webhooks as webhook_advice
from holdfast.transport.advice.contract import check_state
from holdfast.transport.http.api.cursors import invalid_cursor
from holdfast.transport.http.api.webhooks import find_webhook
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response
from holdfast.transport.times import rfc3339, rfc3339_or_none, wall_clock
from holdfast.transport.webhooks.messages import build_test_delivery, message_id

MAX_SEQ = bounds.DELIVERY_NUMBER.most

_NUMBER = re.compile(r"-?[0-9]{1,16}")


class ReplayBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of replay_deliveries: one delivery (`seq`), all finished ones after `after`, or else all dead letters."""

    seq: int | None = None
    after: int | None = None


async def list_deliveries(ctx: HandlerContext, request: Request) -> Response:
    """Deliveries, newest first, in one state or in all."""
    await ctx.authenticate(request)
    query = Query(request, ("state", "limit", "cursor"))
    state = query.choice("state", STATES)
    limit = query.number("limit", bounds.DELIVERY_PAGE)
    cursor = query.text("cursor")
    query.raise_errors()
    if cursor is not None and not _NUMBER.fullmatch(cursor):
        raise invalid_cursor()
    hook = await find_webhook(ctx, request)
    before = MAX_SEQ if cursor is None else int(cursor)
    if cursor is not None:
        await _check_number(ctx, hook.account, before)
    found, more = cut(
        await ctx.use_store(
            lambda store: store.deliveries.page((hook.account, hook.id), state, before, limit + 1, PAGE_BYTES)
        ),
        limit,
    )
    following = str(found[-1].seq) if more else None
    document = {
        "deliveries": [delivery_document(delivery) for delivery in found],
        "nextCursor": following,
        "hasMore": following is not None,
    }
    if following is None:
        return json_response(200, document | {"agent_contract": webhook_advice.deliveries_listed(hook.id)}, NO_STORE)
    next_query = urlencode(query.values() | {"cursor": following})
    contract = check_state("list_deliveries", hook.id, query=next_query)
    return json_response(200, document | {"agent_contract": contract}, NO_STORE)


async def test_webhook(ctx: HandlerContext, request: Request) -> Response:
    """Send a test message; list the deliveries to see whether it arrived."""
    await ctx.authenticate(request)
    hook = await find_webhook(ctx, request)
    sent = await ctx.use_store(lambda store: store.deliveries.add(build_test_delivery(hook, wall_clock())))
    ctx.on_webhook()
    return json_response(
        200, {"delivery": delivery_document(sent), "agent_contract": webhook_advice.changed(hook.id)}, NO_STORE
    )


async def replay_deliveries(ctx: HandlerContext, request: Request) -> Response:
    """Send deliveries again, with the same ids and all their attempts."""
    await ctx.authenticate(request)
    body, _, _ = await read_body(request, ReplayBody)
    checks = Checks()
    checks.require(body.seq is None or body.after is None, "after", "send `seq` or `after`, not both")
    for name in ("seq", "after"):
        number = getattr(body, name)
        checks.check_range(number, name, bounds.DELIVERY_NUMBER)
    checks.raise_errors()
    hook = await find_webhook(ctx, request)
    if body.after is not None:
        await _check_number(ctx, hook.account, body.after)
    again = await ctx.use_store(
        lambda store: store.deliveries.replay(
            (hook.account, hook.id), seq=body.seq, after=body.after, limit=bounds.REPLAYED_DELIVERIES
        )
    )
    if body.seq is not None and not again:
        raise WebhookMissing("there is no such delivery")
    ctx.on_webhook()
    more = len(again) == bounds.REPLAYED_DELIVERIES
    following = again[-1] if more and body.after is not None else None
    document = {"replayed": len(again), "hasMore": more, "nextAfter": following}
    contract = webhook_advice.replay_unfinished(hook.id) if more else webhook_advice.changed(hook.id)
    return json_response(200, document | {"agent_contract": contract})


async def _check_number(ctx: HandlerContext, account: str, number: int) -> None:
    """Refuse the number of a delivery beyond the end of the log: no event has it yet."""
    _, last = await ctx.read(lambda reader: reader.log_bounds(account))
    check_cursor(max(number, 0), 0, last)


def delivery_document(delivery: Delivery) -> dict[str, Any]:
    """A delivery as the account's readers see it."""
    waits = delivery.state == PENDING
    return {
        "seq": delivery.seq,
        "message_id": message_id(delivery),
        "kind": delivery.kind,
        "subject": delivery.subject,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "next_at": rfc3339(delivery.next_at) if waits else None,
        "status": delivery.status,
        "error": delivery.error,
        "created_at": rfc3339(delivery.created_at),
        "settled_at": rfc3339_or_none(delivery.settled_at),
    }
