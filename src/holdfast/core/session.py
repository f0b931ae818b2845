"""A session: an agent's life. What it claimed for its life goes when it goes; its context stays for its next life."""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import ContextConflict, LeaseLost, SessionExpired, SessionMissing, SessionTaken
from holdfast.core.limits import DEFAULT_SESSION_TTL, MAX_SESSION_TTL, MIN_SESSION_TTL
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND, Instant, Row

EXPIRED_MEMORY = 5 * SECOND
"""How long a session that ran out is told apart from one that never was."""

DELETED, EXPIRED = "deleted", "expired"


class Session(Row, frozen=True):
    """The row of a session; it is over once `ended_at` is set."""

    table: ClassVar[str] = "sessions"
    noun: ClassVar[str] = "session"
    hashed: ClassVar[frozenset[str]] = frozenset({"context", "secret"})
    booleans: ClassVar[frozenset[str]] = frozenset({"lane"})

    principal: str = ""
    ttl: Instant = 0
    opened_at: Instant = 0
    expires_at: Instant = 0
    ended_at: Instant | None = None
    ended_how: str | None = None
    name: str | None = None
    """What an agent calls itself in every life; sessions without one cannot be resumed."""
    secret: str | None = None
    """SHA-256 of what resuming needs."""
    proof: str | None = None
    """SHA-256 of this life's lease id."""
    token: int = 0
    generation: int = 0
    """How many lives it has had."""
    lane: bool = False
    """At most one task in flight."""
    turn: int | None = None
    last_action: str | None = None
    next_action: str | None = None
    context_hash: str | None = None
    memory_ref: str | None = None
    context: str | None = None
    context_version: int = 0


def clamp_ttl(seconds: int | None) -> int:
    """A session's time to live is never refused, only bounded."""
    return min(max(DEFAULT_SESSION_TTL if seconds is None else seconds, MIN_SESSION_TTL), MAX_SESSION_TTL)


def is_live(session: Session, now: Instant) -> bool:
    """It may still act."""
    return session.ended_at is None and session.expires_at > now


def is_due(session: Session, now: Instant) -> bool:
    """It ran out and nobody has tidied up after it: the sweep may."""
    return session.ended_at is None and session.expires_at <= now


def is_visible(session: Session, by: Principal) -> bool:
    """A key that is bound to some names sees the sessions that it opened itself; others see all of the account's."""
    return by.name_prefix is None or session.principal == by.id


def find(session: Session | None, principal: str, now: Instant) -> Session:
    """The caller's session, live or just run out. Absent, foreign and long gone look alike."""
    if session is None or session.version == 0 or session.principal != principal or session.ended_how == DELETED:
        raise SessionMissing("there is no such session")
    if now >= (session.ended_at or session.expires_at) + EXPIRED_MEMORY:
        raise SessionMissing("there is no such session")
    return session


def check_live(session: Session | None, principal: str, now: Instant) -> Session:
    """The caller's session, which must still be able to act."""
    found = find(session, principal, now)
    if not is_live(found, now):
        raise SessionExpired("the session has run out")
    return found


def check_claimer(session: Session | None, principal: str, proof: str | None, now: Instant) -> Session:
    """The session for whose life something is claimed; who shows a life's lease id must be its newest life."""
    found = check_live(session, principal, now)
    if proof is not None:
        check_generation(found, proof, now)
    return found


def keep_alive(session: Session, now: Instant) -> Session:
    """Start its time to live again from now."""
    return replace(session, expires_at=now + session.ttl)


def end(session: Session, how: str, now: Instant) -> Session:
    """Close the session; what it held is freed beside this, in the same transaction."""
    return replace(session, ended_at=now, ended_how=how)


# -- sessions that survive their process -------------------------------------------------------------------------


class Context(msgspec.Struct, frozen=True):
    """What an agent wants to know in its next life. What is left out stays as it was."""

    turn: int | None = None
    last_action: str | None = None
    next_action: str | None = None
    context_hash: str | None = None
    memory_ref: str | None = None
    context: str | None = None


def check_name(session: Session, secret: str | None, principal: str, now: Instant) -> None:
    """Only who knows the secret may resume a live session; a name whose session is over is free to whoever used it."""
    knows = secret is not None and session.secret == secret
    if session.version == 0 or (knows and session.principal == principal):
        return
    if session.principal != principal or is_live(session, now):
        raise SessionTaken("this name belongs to a live session", expires_at=session.expires_at)
    if secret is not None:
        raise SessionTaken("this is not the session's secret")


def begin(session: Session, *, proof: str, token: int, now: Instant) -> Session:
    """A new life: its former self is fenced, its context stays."""
    return replace(
        session,
        opened_at=now,
        expires_at=now + session.ttl,
        ended_at=None,
        ended_how=None,
        proof=proof,
        token=token,
        generation=session.generation + 1,
    )


def check_generation(session: Session, proof: str | None, now: Instant) -> None:
    """Only the newest life may act."""
    if proof is not None and session.proof != proof:
        raise LeaseLost("this session goes on in a newer life", held_since=session.opened_at)
    if not is_live(session, now):
        raise SessionExpired("the session has run out")


def write_context(session: Session, context: Context, if_version: int | None) -> Session:
    """The session with its newer context."""
    if if_version is not None and if_version != session.context_version:
        raise ContextConflict(
            f"the context has version {session.context_version}, not {if_version}", version=session.context_version
        )
    given = {
        name: value
        for name, value in zip(context.__struct_fields__, msgspec.structs.astuple(context), strict=True)
        if value is not None
    }
    if not given:
        return session
    return replace(session, **given, context_version=session.context_version + 1)
