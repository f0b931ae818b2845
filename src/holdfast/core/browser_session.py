"""A badge lets a browser in at the dashboard: an invitation once, a visit for as long as it lasts.

Badges stand beside the log: nobody's work depends on who looks at it, and what a visitor changes is told there anyway.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.core.row import SECOND, Instant

INVITATION, VISIT = "invitation", "visit"

MINUTE: Instant = 60 * SECOND
INVITED = 10 * MINUTE
"""How long an invitation waits for its guest."""
IDLE = 30 * MINUTE
"""A visit is over when nobody has done anything for so long."""
LONGEST = 12 * 60 * MINUTE
"""A visit is over after so long, whatever its visitor does."""
SEEN = MINUTE
"""How exactly it is kept when a visitor was last seen: a write for every page would be too many."""


MOST_OF_KEY = 20
"""Visits, and invitations, that one key can have at a time: a new one takes the place of the oldest."""


class BrowserSession(msgspec.Struct, frozen=True):
    """Who is let in, and by which key: when that key is over, so is the badge."""

    id: str
    """SHA-256 of the secret that the browser shows."""
    kind: str
    account: str
    principal: str
    key_hash: str
    made_at: Instant
    seen_at: Instant


def is_over(browser_session: BrowserSession, now: Instant) -> bool:
    """Whether it lets nobody in any more."""
    if browser_session.kind == INVITATION:
        return browser_session.made_at + INVITED <= now
    return browser_session.seen_at + IDLE <= now or browser_session.made_at + LONGEST <= now


def surplus(known: Iterable[BrowserSession], worn: BrowserSession) -> list[BrowserSession]:
    """Those of the same key and kind that are too many, which are the oldest."""
    alike = [each for each in known if (each.key_hash, each.kind) == (worn.key_hash, worn.kind)]
    return sorted(alike, key=lambda each: (each.made_at, each.id))[:-MOST_OF_KEY]


def is_stale(browser_session: BrowserSession, now: Instant) -> bool:
    """Whether it is time to write down that its visitor was seen again."""
    return browser_session.seen_at + SEEN <= now
