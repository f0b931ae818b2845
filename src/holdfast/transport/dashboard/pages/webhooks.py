"""Webhooks page: the account's webhooks, their deliveries, and the forms to create, test, pause, replay and remove."""

from __future__ import annotations

from typing import Any

from holdfast.core.errors import Invalid, WebhookMissing
from holdfast.core.row import SECOND, Instant
from holdfast.core.webhooks.delivery import DEAD, PENDING, STATES, Delivery
from holdfast.core.webhooks.webhook import ACTIVE, PAUSED, STANDARD, Webhook
from holdfast.decoding import decode
from holdfast.engine.verbs.webhooks import RemoveWebhook, RotateWebhookSecret, UpdateWebhook
from holdfast.operations.bounds import REPLAYED_DELIVERIES, WEBHOOK_GRACE
from holdfast.store.contract import Reader, Store
from holdfast.transport.dashboard.access.permissions import WEBHOOKS
from holdfast.transport.dashboard.page import Action, Page, PageRequest, TemplateResponse
from holdfast.transport.http.api.deliveries import MAX_SEQ
from holdfast.transport.http.api.webhooks import CreateBody, make, new_secret, read_webhooks
from holdfast.transport.http.request import HttpRefusal
from holdfast.transport.times import wall_clock
from holdfast.transport.webhooks.messages import build_test_delivery, message_id

PAGE_SIZE = 50
MAX_TESTS = 5
TEST_SCAN_LIMIT = 100
DAY = 24 * 3600
GRACES = ((WEBHOOK_GRACE.default, "1 day"), (0, "stop at once"), (3600, "1 hour"), (7 * DAY, "7 days"))
MAX_DIGITS = 16
"""Enough for 2^53, the largest sequence number."""


async def show(request: PageRequest) -> TemplateResponse:
    """Every webhook of the account, with its last delivery."""
    account = request.account
    hooks, now = await request.ctx.read(lambda reader: (read_webhooks(reader, account), reader.now))

    def read_rows(store: Store) -> list[dict[str, Any]]:
        return [_row(store, hook) for hook in hooks]

    rows = await request.ctx.use_store(read_rows)
    has_pending = any(row["counts"].get(PENDING) for row in rows)
    rows.sort(key=lambda row: row["failure"] is None)
    variables = {"rows": rows, "now": now, "poll": has_pending, "failing": sum(bool(row["failure"]) for row in rows)}
    return TemplateResponse("webhooks.html", variables)


async def show_one(request: PageRequest) -> TemplateResponse:
    """One webhook and its deliveries."""
    return TemplateResponse("webhook.html", await _read_webhook(request))


async def create(request: PageRequest) -> TemplateResponse:
    """Create a webhook; its secret is shown once."""
    form = request.form
    body = CreateBody(
        url=form.get("url", "").strip(),
        events=form.get("events", "").replace(",", " ").split() or None,
        subject=form.get("subject", "").strip() or None,
    )
    created = await make(request.ctx, request.by, request.cause(), body)
    request.item = created.id
    return TemplateResponse("webhook.html", await _read_webhook(request) | {"secret": created.secret})


async def remove(request: PageRequest) -> str:
    """Remove a webhook and its pending deliveries."""
    hook = await _find(request)
    if request.form.get("sure") != "yes":
        raise Invalid("check the box to confirm")
    await request.ctx.run(RemoveWebhook(account=hook.account, cause=request.cause(), hook_id=hook.id))
    request.item = ""
    return "removed"


async def pause_or_resume(request: PageRequest) -> str:
    """Pause the webhook, or resume it where it stopped."""
    hook = await _find(request)
    state = ACTIVE if request.form.get("act") == "resume" else PAUSED
    command = UpdateWebhook(
        account=hook.account, cause=request.cause(), hook_id=hook.id, state=state, reason="by request"
    )  # fmt: skip
    await request.ctx.run(command)
    if state == ACTIVE:
        await request.ctx.use_store(lambda store: store.deliveries.retry_now((hook.account, hook.id)))
    request.ctx.on_webhook()
    return "resumed" if state == ACTIVE else "paused"


async def rotate(request: PageRequest) -> TemplateResponse:
    """Give the webhook a new secret, which is shown once; during the grace period messages carry both signatures."""
    hook = await _find(request)
    if hook.family != STANDARD:
        raise Invalid("the secret of a webhook created by POST /webhooks cannot be rotated: its owner chose it")
    grace = next((seconds for seconds, _ in GRACES if str(seconds) == request.form.get("grace")), WEBHOOK_GRACE.default)
    command = RotateWebhookSecret(
        account=hook.account, cause=request.cause(), hook_id=hook.id, secret=new_secret(), grace=grace * SECOND
    )
    rotated = await request.ctx.run(command)
    return TemplateResponse("webhook.html", await _read_webhook(request) | {"secret": rotated.secret})


async def test(request: PageRequest) -> str:
    """Send a test message."""
    hook = await _find(request)
    await request.ctx.use_store(lambda store: store.deliveries.add(build_test_delivery(hook, wall_clock())))
    request.ctx.on_webhook()
    return "tested"


async def replay(request: PageRequest) -> str:
    """Send one delivery again, or all dead ones."""
    hook, text = await _find(request), request.form.get("seq", "")
    seq = _parse_number(text)
    if text and seq is None:
        raise WebhookMissing("there is no such delivery")
    replayed = await request.ctx.use_store(
        lambda store: store.deliveries.replay((hook.account, hook.id), seq=seq, after=None, limit=REPLAYED_DELIVERIES)
    )
    if seq is not None and not replayed:
        raise WebhookMissing("there is no such delivery")
    request.ctx.on_webhook()
    return "replayed"


async def _find(request: PageRequest) -> Webhook:
    account, hook_id = request.account, request.item
    found = await request.ctx.read(lambda reader: reader.row(Webhook, account, hook_id))
    if found is None:
        raise HttpRefusal(404, "there is no such webhook")
    return found


async def _read_webhook(request: PageRequest) -> dict[str, Any]:
    hook = await _find(request)
    requested = request.query.get("state", "")
    state = requested if requested in STATES else None
    before = _parse_number(request.query.get("before", ""))

    def read_deliveries(store: Store) -> dict[str, Any]:
        page = store.deliveries.page
        found = page((hook.account, hook.id), state, MAX_SEQ if before is None else before, PAGE_SIZE + 1)
        tests = sorted(page((hook.account, hook.id), None, 0, TEST_SCAN_LIMIT), key=_creation_order, reverse=True)
        return _row(store, hook) | {
            "deliveries": [(each, message_id(each)) for each in found[:PAGE_SIZE] if each.seq >= 0],
            "tests": tests[:MAX_TESTS],
            "next_cursor": found[PAGE_SIZE - 1].seq if len(found) > PAGE_SIZE else None,
        }

    def read_clock(reader: Reader) -> Instant:
        return reader.now

    variables = await request.ctx.use_store(read_deliveries)
    return variables | {
        "now": await request.ctx.read(read_clock),
        "chosen_state": state or "",
        "states": STATES,
        "graces": GRACES,
        "before": before,
        "poll": bool(variables["counts"].get(PENDING)),
        "secret": "",
        "can_rotate": hook.family == STANDARD,
    }


def _row(store: Store, hook: Webhook) -> dict[str, Any]:
    found = store.deliveries.page((hook.account, hook.id), None, MAX_SEQ, 1)
    counts = store.deliveries.counts((hook.account, hook.id))
    kinds = decode(hook.events, list[str])
    return {
        "hook": hook,
        "last": found[0] if found else None,
        "counts": counts,
        "kinds": kinds,
        "dead": counts.get(DEAD, 0),
        "failure": store.deliveries.failure((hook.account, hook.id)) if hook.state == ACTIVE else None,
    }


def _creation_order(delivery: Delivery) -> tuple[Instant, int]:
    return delivery.created_at, -delivery.seq


def _parse_number(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS else None


_ACTIONS: dict[str, tuple[str, Action]] = {
    "create": ("create_webhook", create),
    "remove": ("delete_webhook", remove),
    "pause": ("update_webhook", pause_or_resume),
    "resume": ("update_webhook", pause_or_resume),
    "rotate": ("rotate_webhook_secret", rotate),
    "test": ("test_webhook", test),
    "replay": ("replay_deliveries", replay),
}
PAGE = Page("webhooks", "Webhooks", "w", WEBHOOKS, show, show_one, _ACTIONS)
