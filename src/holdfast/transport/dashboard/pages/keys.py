"""Keys page: the account's keys, and how much of its plan is used."""

from __future__ import annotations

from typing import Any

from holdfast.core.plan import CLAIM, CREATE, CYCLE, HEARTBEAT, MUTATION, READ
from holdfast.core.principal import ROOT, SCOPES, STATIC, Principal, may_see_key
from holdfast.core.row import Instant
from holdfast.operations.bounds import KEY_GRACE
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.access.permissions import ACCOUNT, KEYS, may_use
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.http.api import keys
from holdfast.transport.http.request import HttpRefusal

DAY = 24 * 3600
LIFETIMES = (
    (0, "never"),
    (1, "in 1 day"),
    (7, "in 7 days"),
    (30, "in 30 days"),
    (90, "in 90 days"),
    (365, "in 1 year"),
)
GRACES = ((3600, "1 hour"), (0, "stop at once"), (600, "10 minutes"), (DAY, "1 day"))
MAX_DIGITS = 6
CLASSES = (CREATE, CLAIM, READ, MUTATION, HEARTBEAT)


async def show(request: PageRequest) -> TemplateResponse:
    """Usage for every key; the list of keys for administrators."""
    return TemplateResponse("keys.html", await _read_keys(request))


async def show_one(request: PageRequest) -> TemplateResponse:
    """One key, with the forms to rotate and revoke it."""
    return TemplateResponse("key.html", await _read_key(request))


async def create(request: PageRequest) -> TemplateResponse:
    """Create a key with at most the scopes of the key that creates it; its secret is shown once."""
    form = request.form
    days = _parse_number(form.get("days", ""), 0)
    body = keys.KeyBody(
        name=form.get("name", "").strip(),
        scopes=[scope for scope in SCOPES if form.get(f"scope-{scope}") == "yes"],
        prefix=form.get("prefix", "").strip() or None,
        expires_in_seconds=days * DAY or None,
        test=form.get("test") == "yes",
    )
    secret, made = await keys.make(request.ctx, request.by, request.cause(), body, by_hash=request.key_hash)
    return TemplateResponse("keys.html", await _read_keys(request) | {"secret": secret, "made": made})


async def rotate(request: PageRequest) -> TemplateResponse:
    """Give a key a new secret, which is shown once."""
    row = (await _read_key(request))["key"].row
    grace = _parse_number(request.form.get("grace", ""), KEY_GRACE.default)
    secret, made = await keys.rotate(
        request.ctx, request.by, request.cause(), row, by_hash=request.key_hash, grace_seconds=grace
    )
    return TemplateResponse("key.html", await _read_key(request) | {"secret": secret, "made": made})


async def revoke(request: PageRequest) -> str:
    """Revoke a key."""
    if request.form.get("sure") != "yes":
        raise HttpRefusal(400, "check the box to confirm")
    await keys.revoke(request.ctx, request.by, request.cause(), request.item, by_hash=request.key_hash)
    return "revoked"


class Row:
    """A key as a row of the table."""

    def __init__(self, row: Principal, used_at: Instant | None, now: Instant) -> None:
        self.row = row
        self.used = None if used_at is None else now - used_at
        self.age = now - row.created_at if row.created_at else None
        self.left = None if row.expires_at is None else row.expires_at - now
        self.old_left = 0 if row.old_until is None else max(row.old_until - now, 0)
        self.is_configured = row.source in {ROOT, STATIC}
        expired = self.left is not None and self.left <= 0
        self.state = "revoked" if row.revoked_at is not None else "expired" if expired else "active"


async def _read_keys(request: PageRequest) -> dict[str, Any]:
    by = request.by
    allowance = await request.ctx.allowance(by.account)

    def read_usage(reader: Reader) -> dict[str, Any]:
        (used, held), now = reader.usage(by.account), reader.now
        plan, cycle = allowance.in_force(now), allowance.cycle(now)
        keys = [key for key in reader.principals(by.account) if may_use(by, KEYS) and may_see_key(by, key)]
        uses = reader.key_uses(by.account) if keys else {}
        rows = [Row(key, uses.get(key.id), now) for key in keys]
        return {
            "plan": plan,
            "expired": allowance.is_expired(now),
            "resets_in": cycle + CYCLE - now,
            "bars": [
                ("tasks created this month", used.in_cycle(cycle), plan.tasks_per_month),
                ("tasks held now", held, plan.max_workers),
            ],
            "leases_held": reader.counts(by.account).live_leases,
            "keys": sorted(rows, key=lambda each: (each.state != "active", each.row.name, each.row.id)),
        }

    variables = await request.ctx.read(read_usage)
    spent = request.ctx.access.rate_limiter.spent
    variables["budgets"] = [(name, spent(by.account, name), variables["plan"].per_hour(name)) for name in CLASSES]
    scopes = {scope: description for scope, description in SCOPES.items() if by.may(scope)}
    return variables | {"scopes": scopes, "lifetimes": LIFETIMES, "secret": "", "made": None}


async def _read_key(request: PageRequest) -> dict[str, Any]:
    by, key_id = request.by, request.item
    if not may_use(by, KEYS):
        raise HttpRefusal(404, "there is no such key")

    def read_key(reader: Reader) -> dict[str, Any]:
        key = reader.row(Principal, by.account, key_id)
        if key is None or not may_see_key(by, key):
            raise HttpRefusal(404, "there is no such key")
        return {"key": Row(key, reader.key_uses(by.account).get(key.id), reader.now)}

    return await request.ctx.read(read_key) | {"graces": GRACES, "secret": "", "made": None}


def _parse_number(text: str, default: int) -> int:
    """A number; the default if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else default


PAGE = Page(
    "keys",
    "Keys",
    "k",
    ACCOUNT,
    show,
    show_one,
    {"create": ("create_key", create), "rotate": ("rotate_key", rotate), "revoke": ("revoke_key", revoke)},
)
