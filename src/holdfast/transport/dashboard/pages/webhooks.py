"""Webhooks: who is told of what, whether it arrives, and sending it again."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.errors import Invalid, WebhookMissing
from holdfast.core.row import SECOND, Instant
from holdfast.core.webhooks.delivery import DEAD, PENDING, STATES, Delivery
from holdfast.core.webhooks.webhook import ACTIVE, PAUSED, STANDARD, Webhook
from holdfast.engine.verbs.webhooks import RotateWebhookSecret, UpdateWebhook
from holdfast.store.contract import Reader, Store
from holdfast.transport.dashboard.page import Act, Page, Shown, Visit
from holdfast.transport.http.api.deliveries import FROM_THE_NEWEST, MAX_REPLAY
from holdfast.transport.http.api.webhooks import USUAL_GRACE, hooks_of, new_secret
from holdfast.transport.http.context import wall_clock
from holdfast.transport.http.request import HttpRefusal
from holdfast.transport.webhooks.messages import a_test, message_id

PAGE_SIZE = 50
TESTS = 5
LOOKED_AT = 100
DAY = 24 * 3600
GRACES = ((USUAL_GRACE, "for a day"), (0, "not at all"), (3600, "for an hour"), (7 * DAY, "for a week"))


async def show(visit: Visit) -> Shown:
    """Every webhook of the account, and how the last message to it went."""
    account = visit.account
    hooks, now = await visit.ctx.read(lambda reader: (hooks_of(reader, account), reader.now))

    def look(store: Store) -> list[dict[str, Any]]:
        return [_row(store, hook) for hook in hooks]

    rows = await visit.ctx.beside_the_log(look)
    return Shown("webhooks.html", {"rows": rows, "now": now, "hurry": any(row["counts"].get(PENDING) for row in rows)})


async def show_one(visit: Visit) -> Shown:
    """One of them, and what was sent to it."""
    return Shown("webhook.html", await _told(visit))


async def settle(visit: Visit) -> str:
    """Let it rest, or let it go on where it stopped."""
    hook = await _find(visit)
    state = ACTIVE if visit.form.get("act") == "resume" else PAUSED
    command = UpdateWebhook(
        account=hook.account, cause=visit.cause(), hook_id=hook.id, state=state, reason="by request"
    )  # fmt: skip
    await visit.ctx.run(command)
    if state == ACTIVE:
        await visit.ctx.beside_the_log(lambda store: store.deliveries.hasten((hook.account, hook.id)))
    visit.ctx.on_webhook()
    return "resumed" if state == ACTIVE else "paused"


async def rotate(visit: Visit) -> Shown:
    """A new secret, shown this once; for a while every message carries both signatures."""
    hook = await _find(visit)
    if hook.family != STANDARD:
        raise Invalid("the secret of a webhook made by /webhooks is its owner's to choose")
    grace = next((seconds for seconds, _ in GRACES if str(seconds) == visit.form.get("grace")), USUAL_GRACE)
    command = RotateWebhookSecret(
        account=hook.account, cause=visit.cause(), hook_id=hook.id, secret=new_secret(), grace=grace * SECOND
    )
    rotated = await visit.ctx.run(command)
    return Shown("webhook.html", await _told(visit) | {"secret": rotated.secret})


async def test(visit: Visit) -> str:
    """Send a message that tells of nothing."""
    hook = await _find(visit)
    await visit.ctx.beside_the_log(lambda store: store.deliveries.add(a_test(hook, wall_clock())))
    visit.ctx.on_webhook()
    return "tested"


async def replay(visit: Visit) -> str:
    """Send one again, or all that nobody took."""
    hook, text = await _find(visit), visit.form.get("seq", "")
    seq = _number(text)
    if text and seq is None:
        raise WebhookMissing("there is no such delivery")
    again = await visit.ctx.beside_the_log(
        lambda store: store.deliveries.replay((hook.account, hook.id), seq=seq, after=None, limit=MAX_REPLAY)
    )
    if seq is not None and not again:
        raise WebhookMissing("there is no such delivery")
    visit.ctx.on_webhook()
    return "replayed"


async def _find(visit: Visit) -> Webhook:
    account, hook_id = visit.account, visit.item
    found = await visit.ctx.read(lambda reader: reader.row(Webhook, account, hook_id))
    if found is None:
        raise HttpRefusal(404, "there is no such webhook")
    return found


async def _told(visit: Visit) -> dict[str, Any]:
    hook = await _find(visit)
    asked = visit.query.get("state", "")
    state = asked if asked in STATES else None
    before = _number(visit.query.get("before", ""))

    def look(store: Store) -> dict[str, Any]:
        page = store.deliveries.page
        found = page((hook.account, hook.id), state, FROM_THE_NEWEST if before is None else before, PAGE_SIZE + 1)
        tests = sorted(page((hook.account, hook.id), None, 0, LOOKED_AT), key=_made, reverse=True)
        return _row(store, hook) | {
            "deliveries": [(each, message_id(each)) for each in found[:PAGE_SIZE] if each.seq >= 0],
            "tests": tests[:TESTS],
            "following": found[PAGE_SIZE - 1].seq if len(found) > PAGE_SIZE else None,
        }

    def clock(reader: Reader) -> Instant:
        return reader.now

    told = await visit.ctx.beside_the_log(look)
    hurry = bool(told["counts"].get(PENDING))
    more = {"now": await visit.ctx.read(clock), "state_asked": state or "", "states": STATES, "graces": GRACES}
    return told | more | {"before": before, "hurry": hurry, "secret": "", "can_rotate": hook.family == STANDARD}


def _row(store: Store, hook: Webhook) -> dict[str, Any]:
    found = store.deliveries.page((hook.account, hook.id), None, FROM_THE_NEWEST, 1)
    counts = store.deliveries.counts((hook.account, hook.id))
    kinds = msgspec.json.decode(hook.events, type=list[str])
    return {
        "hook": hook,
        "last": found[0] if found else None,
        "counts": counts,
        "kinds": kinds,
        "dead": counts.get(DEAD, 0),
    }


def _made(delivery: Delivery) -> tuple[Instant, int]:
    return delivery.created_at, -delivery.seq


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 17 else None  # noqa: PLR2004 - 2^53


_ACTS: dict[str, Act] = {"pause": settle, "resume": settle, "rotate": rotate, "test": test, "replay": replay}
PAGE = Page("webhooks", "Webhooks", "w", "admin", show, show_one, {name: ("admin", act) for name, act in _ACTS.items()})
