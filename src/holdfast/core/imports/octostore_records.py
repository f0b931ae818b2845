"""Records of an OctoStore database, with hashes in place of tokens and lease ids.

The hashes are made when the file is read. Times are those of the wall clock.
"""

from __future__ import annotations

import msgspec

from holdfast.core.row import Instant

DELAY_HOLDER = "ffffffff-ffff-ffff-ffff-ffffffffffff"
"""The holder of a record that is no lock but the delay after one."""


class User(msgspec.Struct, frozen=True):
    """A user with a bearer token."""

    id: str
    name: str
    key_hash: str
    namespace: str | None
    created_at: Instant


class Session(msgspec.Struct, frozen=True):
    """A session of a user."""

    id: str
    user_id: str
    ttl: Instant
    expires_at: Instant
    created_at: Instant


class Lock(msgspec.Struct, frozen=True):
    """A lock that was held when the file was written, expired or not; elections are locks too."""

    name: str
    holder_id: str
    """The user, or the session if the lock ends with it."""
    proof: str
    """Hash of the lease id."""
    token: int
    acquired_at: Instant
    expires_at: Instant
    metadata: str | None
    session_id: str | None
    ephemeral: bool
    delay: Instant


class Delay(msgspec.Struct, frozen=True):
    """A name that cannot be acquired until its delay is over."""

    name: str
    length: Instant
    available_at: Instant


class AccessList(msgspec.Struct, frozen=True):
    """Who may acquire a name, in our own form (`core.acl`)."""

    name: str
    acl: str


class Webhook(msgspec.Struct, frozen=True):
    """A webhook of a user."""

    id: str
    user_id: str
    url: str
    secret: str | None
    events: str
    """A JSON list."""
    pattern: str | None
    created_at: Instant
    active: bool


class Records(msgspec.Struct, frozen=True):
    """Everything in the file that can be read."""

    next_token: int = 1
    users: tuple[User, ...] = ()
    sessions: tuple[Session, ...] = ()
    locks: tuple[Lock, ...] = ()
    delays: tuple[Delay, ...] = ()
    access_lists: tuple[AccessList, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    refused: tuple[str, ...] = ()
    """The records that cannot be read, with the reason."""

    @property
    def highest_token(self) -> int:
        """No token up to this one may be granted again."""
        return max([self.next_token, *(lock.token for lock in self.locks)])
