"""Browser sessions of the dashboard, and the one-time sign-in links that start them.

They are not in the event log: no work depends on who reads the dashboard, and every change made there is logged anyway.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.core.row import SECOND, Instant

SIGN_IN_LINK, SESSION = "invitation", "visit"
"""The two kinds. The values are stored in databases and therefore keep their old words."""

MINUTE: Instant = 60 * SECOND
LINK_LIFETIME = 10 * MINUTE
IDLE_TIMEOUT = 30 * MINUTE
"""A session ends after this long without a request."""
MAX_LIFETIME = 12 * 60 * MINUTE
"""A session ends after this long, even if it is in use."""
SEEN_PRECISION = MINUTE
"""How often `seen_at` is updated: a write for every page would be too many."""
MAX_PER_KEY = 20
"""Sessions, and links, that one key can have at a time: a new one replaces the oldest."""


class BrowserSession(msgspec.Struct, frozen=True):
    """A browser session or a sign-in link. It ends with the key that opened it."""

    id: str
    """SHA-256 of the secret that the browser sends."""
    kind: str
    account: str
    principal: str
    key_hash: str
    made_at: Instant
    seen_at: Instant


def is_expired(browser_session: BrowserSession, now: Instant) -> bool:
    """Whether the session or the link has expired."""
    if browser_session.kind == SIGN_IN_LINK:
        return browser_session.made_at + LINK_LIFETIME <= now
    return browser_session.seen_at + IDLE_TIMEOUT <= now or browser_session.made_at + MAX_LIFETIME <= now


def excess_sessions(existing: Iterable[BrowserSession], newest: BrowserSession) -> list[BrowserSession]:
    """The oldest sessions, or links, of the same key as `newest` that are beyond `MAX_PER_KEY`."""
    same = [each for each in existing if (each.key_hash, each.kind) == (newest.key_hash, newest.kind)]
    return sorted(same, key=lambda each: (each.made_at, each.id))[:-MAX_PER_KEY]


def needs_seen_update(browser_session: BrowserSession, now: Instant) -> bool:
    """Whether `seen_at` is old enough to be written again."""
    return browser_session.seen_at + SEEN_PRECISION <= now
