"""A session: an agent's life. What it claimed for its life goes when it goes."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from holdfast.core.errors import SessionExpired, SessionMissing
from holdfast.core.row import SECOND, Instant, Row

MIN_TTL, MAX_TTL, DEFAULT_TTL = 10, 300, 60

MEMORY = 5 * SECOND
"""How long a session that ran out is told apart from one that never was."""

DELETED, EXPIRED = "deleted", "expired"


class Session(Row, frozen=True):
    """The row of a session; it is over once `ended_at` is set."""

    table: ClassVar[str] = "sessions"
    noun: ClassVar[str] = "session"

    principal: str = ""
    ttl: Instant = 0
    opened_at: Instant = 0
    expires_at: Instant = 0
    ended_at: Instant | None = None
    ended_how: str | None = None


def clamp_ttl(seconds: int | None) -> int:
    """A session's time to live is never refused, only bounded."""
    return min(max(DEFAULT_TTL if seconds is None else seconds, MIN_TTL), MAX_TTL)


def is_live(session: Session, now: Instant) -> bool:
    """It may still act."""
    return session.ended_at is None and session.expires_at > now


def is_due(session: Session, now: Instant) -> bool:
    """It ran out and nobody has tidied up after it: the sweep may."""
    return session.ended_at is None and session.expires_at <= now


def find(session: Session | None, principal: str, now: Instant) -> Session:
    """The caller's session, live or just run out. Absent, foreign and long gone look alike."""
    if session is None or session.version == 0 or session.principal != principal or session.ended_how == DELETED:
        raise SessionMissing("there is no such session")
    if now >= (session.ended_at or session.expires_at) + MEMORY:
        raise SessionMissing("there is no such session")
    return session


def check_live(session: Session | None, principal: str, now: Instant) -> Session:
    """The caller's session, which must still be able to act."""
    found = find(session, principal, now)
    if not is_live(found, now):
        raise SessionExpired("the session has run out")
    return found


def keep_alive(session: Session, now: Instant) -> Session:
    """Start its time to live again from now."""
    return replace(session, expires_at=now + session.ttl)


def end(session: Session, how: str, now: Instant) -> Session:
    """Close the session; what it held is freed beside this, in the same transaction."""
    return replace(session, ended_at=now, ended_how=how)
