"""Elections page: the leader of each election. Elections belong to no account, so only the server's own keys see it."""

from __future__ import annotations

from typing import Any

from holdfast.core import lease as leases
from holdfast.core.lease import Lease
from holdfast.core.names import DEFAULT_ACCOUNT, ELECTION_PREFIX
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.access.permissions import OPERATOR
from holdfast.transport.dashboard.held import renewal_health
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse

PAGE_SIZE = 50


async def show(request: PageRequest) -> TemplateResponse:
    """Elections by id, with a leader or recently vacant."""
    after = request.query.get("after", "")

    def read_elections(reader: Reader) -> tuple[list[dict[str, Any]], str]:
        found = reader.rows_after(Lease, DEFAULT_ACCOUNT, ELECTION_PREFIX + after, PAGE_SIZE + 1)
        elections = [row for row in found if row.account == DEFAULT_ACCOUNT and row.id.startswith(ELECTION_PREFIX)]
        has_more = len(elections) > PAGE_SIZE
        next_cursor = elections[PAGE_SIZE - 1].id.removeprefix(ELECTION_PREFIX) if has_more else ""
        return [_describe(election, reader) for election in elections[:PAGE_SIZE]], next_cursor

    elections, next_cursor = await request.ctx.read(read_elections)
    variables = {"elections": elections, "after": after, "next_cursor": next_cursor}
    return TemplateResponse("elections.html", variables)


def _describe(lease: Lease, reader: Reader) -> dict[str, Any]:
    left = (lease.expires_at or reader.now) - reader.now
    return {
        "id": lease.id.removeprefix(ELECTION_PREFIX),
        "lease": lease,
        "live": leases.is_live(lease, reader.now),
        "left": left,
        "health": renewal_health(left, lease.ttl),
        "since": reader.now - (lease.claimed_at or reader.now),
        "last": leases.last_ending(lease),
        "ago": reader.now - lease.changed_at,
    }


PAGE = Page("elections", "Elections", "e", OPERATOR, show, server_only=True)
