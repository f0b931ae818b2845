"""Elections: who leads each room. Rooms belong to nobody's account, so whoever runs this server sees them."""

from __future__ import annotations

from typing import Any

from holdfast.core import lease as leases
from holdfast.core.lease import Lease
from holdfast.core.names import DEFAULT_ACCOUNT, ELECTION_PREFIX
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.held import pulse
from holdfast.transport.dashboard.page import Page, Shown, Visit

PAGE_SIZE = 50


async def show(visit: Visit) -> Shown:
    """Rooms by id, led or lately vacant."""
    after = visit.query.get("after", "")

    def look(reader: Reader) -> tuple[list[dict[str, Any]], str]:
        found = reader.rows_after(Lease, DEFAULT_ACCOUNT, ELECTION_PREFIX + after, PAGE_SIZE + 1)
        rooms = [row for row in found if row.account == DEFAULT_ACCOUNT and row.id.startswith(ELECTION_PREFIX)]
        following = rooms[PAGE_SIZE - 1].id.removeprefix(ELECTION_PREFIX) if len(rooms) > PAGE_SIZE else ""
        return [_room(room, reader) for room in rooms[:PAGE_SIZE]], following

    rooms, following = await visit.ctx.read(look)
    return Shown("elections.html", {"rooms": rooms, "after": after, "following": following})


def _room(lease: Lease, reader: Reader) -> dict[str, Any]:
    left = (lease.expires_at or reader.now) - reader.now
    return {
        "id": lease.id.removeprefix(ELECTION_PREFIX),
        "lease": lease,
        "live": leases.is_live(lease, reader.now),
        "left": left,
        "pulse": pulse(left, lease.ttl),
        "since": reader.now - (lease.claimed_at or reader.now),
        "quiet": max(lease.ttl - left, 0),
        "before": leases.last_ending(lease),
        "ago": reader.now - lease.changed_at,
    }


PAGE = Page("elections", "Elections", "e", "admin", show, house=True)
