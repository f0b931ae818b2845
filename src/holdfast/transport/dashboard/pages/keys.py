"""Keys and usage: who may do what, and how much of the plan is used."""

from __future__ import annotations

from typing import Any

from holdfast.core.plan import CLAIM, CREATE, CYCLE, HEARTBEAT, MUTATION, READ
from holdfast.core.principal import ROOT, SCOPES, STATIC, Principal
from holdfast.core.row import Instant
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.page import Page, Shown, Visit
from holdfast.transport.http.api import keys
from holdfast.transport.http.request import HttpRefusal

DAY = 24 * 3600
LIVES = ((0, "until it is revoked"), (1, "1 day"), (7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "a year"))
GRACES = ((3600, "for an hour"), (0, "not at all"), (600, "for 10 minutes"), (DAY, "for a day"))
LONGEST_NUMBER = 6
CLASSES = (CREATE, CLAIM, READ, MUTATION, HEARTBEAT)


async def show(visit: Visit) -> Shown:
    """Usage for everybody; keys for administrators."""
    return Shown("keys.html", await _told(visit))


async def show_one(visit: Visit) -> Shown:
    """One key, and what can be done about it."""
    return Shown("key.html", await _key(visit))


async def create(visit: Visit) -> Shown:
    """A new key, for no more than its maker may do; shown this once."""
    form = visit.form
    days = _number(form.get("days", ""), 0)
    body = keys.KeyBody(
        name=form.get("name", "").strip(),
        scopes=[scope for scope in SCOPES if form.get(f"scope-{scope}") == "yes"],
        prefix=form.get("prefix", "").strip() or None,
        expires_in_seconds=days * DAY or None,
        test=form.get("test") == "yes",
    )
    secret, made = await keys.make(visit.ctx, visit.by, visit.cause(), body)
    return Shown("keys.html", await _told(visit) | {"secret": secret, "made": made})


async def rotate(visit: Visit) -> Shown:
    """A new secret for a key; shown this once."""
    told = await _key(visit)
    grace = _number(visit.form.get("grace", ""), keys.USUAL_GRACE)
    secret, made = await keys.rotate(
        visit.ctx, visit.by, visit.cause(), told["key"].row, by_hash=visit.browser_session.key_hash, grace_seconds=grace
    )
    return Shown("key.html", await _key(visit) | {"secret": secret, "made": made})


async def revoke(visit: Visit) -> str:
    """A key stops working."""
    if visit.form.get("sure") != "yes":
        raise HttpRefusal(400, "say that you are sure")
    await keys.revoke(visit.ctx, visit.by, visit.cause(), visit.item)
    return "revoked"


class Row:
    """A key as a line of the table."""

    def __init__(self, row: Principal, used_at: Instant | None, now: Instant) -> None:
        self.row = row
        self.used = None if used_at is None else now - used_at
        self.age = now - row.created_at if row.created_at else None
        self.left = None if row.expires_at is None else row.expires_at - now
        self.old_left = 0 if row.old_until is None else max(row.old_until - now, 0)
        self.is_configured = row.source in {ROOT, STATIC}
        over = self.left is not None and self.left <= 0
        self.state = "revoked" if row.revoked_at is not None else "expired" if over else "works"


async def _told(visit: Visit) -> dict[str, Any]:
    by = visit.by
    allowance = await visit.ctx.allowance(by.account)

    def look(reader: Reader) -> dict[str, Any]:
        (used, held), now = reader.usage(by.account), reader.now
        plan, cycle = allowance.in_force(now), allowance.cycle(now)
        uses = reader.uses(by.account) if by.may("admin") else {}
        rows = [Row(key, uses.get(key.id), now) for key in reader.principals(by.account)] if by.may("admin") else []
        return {
            "plan": plan,
            "lapsed": allowance.is_lapsed(now),
            "renews": cycle + CYCLE - now,
            "bars": [
                ("tasks made this month", used.in_cycle(cycle), plan.tasks_per_month),
                ("tasks held now", held, plan.max_workers),
            ],
            "names_held": reader.counts(by.account).live_leases,
            "keys": sorted(rows, key=lambda each: (each.state != "works", each.row.name, each.row.id)),
        }

    told = await visit.ctx.read(look)
    spent = visit.ctx.meter.spent
    told["budgets"] = [(name, spent(by.account, name), told["plan"].per_hour(name)) for name in CLASSES]
    scopes = {scope: words for scope, words in SCOPES.items() if by.may(scope)}
    return told | {"scopes": scopes, "lives": LIVES, "secret": "", "made": None}


async def _key(visit: Visit) -> dict[str, Any]:
    by, key_id = visit.by, visit.item
    if not by.may("admin"):
        raise HttpRefusal(404, "there is no such key")

    def look(reader: Reader) -> dict[str, Any]:
        key = reader.row(Principal, by.account, key_id)
        if key is None:
            raise HttpRefusal(404, "there is no such key")
        return {"key": Row(key, reader.uses(by.account).get(key.id), reader.now)}

    return await visit.ctx.read(look) | {"graces": GRACES, "secret": "", "made": None}


def _number(text: str, usual: int) -> int:
    """What was chosen; whatever is no number of ours was not."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else usual


PAGE = Page(
    "keys",
    "Keys",
    "k",
    "any",
    show,
    show_one,
    {"create": ("admin", create), "rotate": ("admin", rotate), "revoke": ("admin", revoke)},
)
