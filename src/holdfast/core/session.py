"""Sessions of agents. The leases of a session end with it; its context is kept until the agent resumes.

Each time a named session is opened or resumed it starts a new generation, and only the newest generation may act.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import (
    ContextConflict,
    Invalid,
    LeaseLost,
    SessionExpired,
    SessionLive,
    SessionMissing,
    SessionTaken,
)
from holdfast.core.lease import RESTORED, RESTORED_MESSAGE
from holdfast.core.limits import DEFAULT_SESSION_TTL, MAX_SESSION_TTL, MIN_SESSION_TTL
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND, Instant, Row

EXPIRED_REPORT_PERIOD = 5 * SECOND
"""For how long calls to an expired session are answered with session_expired; after that with session_not_found."""

DELETED, EXPIRED = "deleted", "expired"
"""How a session ends, besides `core.lease.RESTORED`."""


class Session(Row, frozen=True):
    """The row of a session; it has ended once `ended_at` is set."""

    table: ClassVar[str] = "sessions"
    noun: ClassVar[str] = "session"
    hashed: ClassVar[frozenset[str]] = frozenset({"context", "secret"})
    booleans: ClassVar[frozenset[str]] = frozenset({"lane"})
    # A renewal changes none of these, so it updates no index but the one by deadline.
    column_groups: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("ended_at", "ended_how"),
        ("name", "secret", "proof", "token", "generation", "lane", "capabilities"),
        ("turn", "last_action", "next_action", "context_hash", "memory_ref", "context", "context_version"),
    )

    principal: str = ""
    ttl: Instant = 0
    opened_at: Instant = 0
    expires_at: Instant = 0
    ended_at: Instant | None = None
    ended_how: str | None = None
    name: str | None = None
    """The agent's stable name; sessions without one cannot be resumed."""
    secret: str | None = None
    """SHA-256 of the secret that resuming requires."""
    proof: str | None = None
    """SHA-256 of this generation's lease id."""
    token: int = 0
    generation: int = 0
    """How often it was opened or resumed."""
    lane: bool = False
    """At most one task in flight."""
    capabilities: str | None = None
    """What the agent can do, sorted and separated by commas: claims for the session have these capabilities."""
    turn: int | None = None
    last_action: str | None = None
    next_action: str | None = None
    context_hash: str | None = None
    memory_ref: str | None = None
    context: str | None = None
    context_version: int = 0


def clamp_ttl(seconds: int | None) -> int:
    """The TTL within its bounds; a value outside is never refused."""
    return min(max(DEFAULT_SESSION_TTL if seconds is None else seconds, MIN_SESSION_TTL), MAX_SESSION_TTL)


def is_live(session: Session, now: Instant) -> bool:
    """Whether it has neither ended nor expired."""
    return session.ended_at is None and session.expires_at > now


def is_due(session: Session, now: Instant) -> bool:
    """Whether it has expired and was not ended yet: the sweep may end it."""
    return session.ended_at is None and session.expires_at <= now


def deadline(session: Session) -> Instant:
    """When everything that was claimed for the session ends with it, unless it is renewed."""
    return session.expires_at if session.ended_at is None else min(session.expires_at, session.ended_at)


def is_visible(session: Session, by: Principal) -> bool:
    """Whether a key may read it: a key bound to a name prefix only the sessions it opened, any other key all."""
    return by.name_prefix is None or session.principal == by.id


def find(session: Session | None, principal: str, now: Instant) -> Session:
    """The caller's session, live or just expired. Absent, foreign and long expired ones get the same refusal."""
    if session is None or session.version == 0 or session.principal != principal or session.ended_how == DELETED:
        raise SessionMissing("there is no such session")
    if now >= (session.ended_at or session.expires_at) + EXPIRED_REPORT_PERIOD:
        raise SessionMissing("there is no such session")
    return session


def check_live(session: Session | None, principal: str, now: Instant) -> Session:
    """The caller's session, or a refusal if it is not live."""
    found = find(session, principal, now)
    if not is_live(found, now):
        raise SessionExpired("the session has expired")
    return found


def check_claimer(session: Session | None, principal: str, proof: str | None, now: Instant) -> Session:
    """The session to claim for. The caller must be its newest generation.

    A session that was never resumed has only one, so its lease id may be omitted. After that an older process may
    still run, and only the lease id tells them apart.
    """
    found = check_live(session, principal, now)
    if proof is None and found.generation > 1:
        message = "this session was resumed: send `session_lease_id`, the `lease_id` of the answer that resumed it"
        raise Invalid(message, [{"pointer": "/session_lease_id", "code": "missing", "message": message}])
    if proof is not None:
        check_generation(found, proof, now)
    return found


def keep_alive(session: Session, now: Instant) -> Session:
    """Start its time to live again from now."""
    return replace(session, expires_at=now + session.ttl)


def end(session: Session, how: str, now: Instant) -> Session:
    """Close the session; the engine frees what it held in the same transaction."""
    return replace(session, ended_at=now, ended_how=how)


# -- named sessions, which can be resumed ------------------------------------------------------------------------


class Context(msgspec.Struct, frozen=True):
    """What an agent needs when it resumes. None leaves a field as it was."""

    turn: int | None = None
    last_action: str | None = None
    next_action: str | None = None
    context_hash: str | None = None
    memory_ref: str | None = None
    context: str | None = None


def check_name(session: Session, secret: str | None, principal: str, now: Instant) -> None:
    """Check that a caller may open a session: a live one needs its secret, one that is over only its principal."""
    has_secret = secret is not None and session.secret == secret
    if session.version == 0 or (has_secret and session.principal == principal):
        return
    if session.principal != principal or is_live(session, now):
        raise SessionTaken(
            "this name belongs to a live session, or to one of another key", expires_at=session.expires_at
        )
    if secret is not None:
        raise SessionTaken("this is not the session's secret")


def check_not_live(session: Session, now: Instant) -> None:
    """Check that no process of the caller can still act for the session."""
    if is_live(session, now):
        raise SessionLive(
            "this session is live: your former process may still run, and resuming would end its lease ids",
            expires_at=session.expires_at,
            generation=session.generation,
        )


def begin(session: Session, *, token: int, now: Instant) -> Session:
    """Start a new generation, whose proof is still missing: the previous one is fenced off, the context stays."""
    return replace(
        session,
        opened_at=now,
        expires_at=now + session.ttl,
        ended_at=None,
        ended_how=None,
        proof=None,
        token=token,
        generation=session.generation + 1,
    )


def check_generation(session: Session, proof: str | None, now: Instant) -> None:
    """Only the newest generation may act."""
    if proof is not None and session.proof != proof:
        raise LeaseLost("this session was resumed by a newer process, which holds it now", held_since=session.opened_at)
    if session.ended_how == RESTORED:
        raise LeaseLost(f"{RESTORED_MESSAGE}: open the session again", ended_at=session.ended_at, reason=RESTORED)
    if not is_live(session, now):
        raise SessionExpired("the session has expired")


def write_context(session: Session, context: Context, if_version: int | None) -> Session:
    """Write the context, if it has the version that the caller read."""
    if if_version is not None and if_version != session.context_version:
        raise ContextConflict(
            f"the context has version {session.context_version}, not {if_version}", version=session.context_version
        )
    changed = {
        name: value
        for name, value in zip(context.__struct_fields__, msgspec.structs.astuple(context), strict=True)
        if value is not None
    }
    if not changed:
        return session
    return replace(session, **changed, context_version=session.context_version + 1)
