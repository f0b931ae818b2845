"""Authentication: bearer keys and the admin key."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable

from holdfast.core.acl import hash_token
from holdfast.core.errors import Forbidden, Unauthenticated, UnknownKey
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.principal import Principal, admin_principal, is_well_formed, works_until
from holdfast.core.row import SECOND, Instant
from holdfast.telemetry.metric_names import KEY_CHANGES
from holdfast.telemetry.registry import Registry
from holdfast.transport.http.request import Request
from holdfast.transport.times import wall_clock

CACHE_SECONDS = 5.0
CACHE_SIZE = 10_000
"""Keys that were valid once are remembered beyond those seconds: they are looked up again before any unknown key."""

_BEARER = b"Bearer "
_ADMIN_BEARER = b"Bearer admin:"

Find = Callable[[str, bool], Awaitable[Principal | None]]
"""Looks a key's hash up in the store; True for a key that was valid before."""


class Authenticator:
    """Checks credentials. Keys are cached for five seconds: until then, one that another server revoked still works."""

    def __init__(self, find: Find, admin_key: str | None, registry: Registry) -> None:
        self._find = find
        self._registry = registry
        """Counts changes of keys, over all worker processes of this server."""
        self._admin_key = admin_key.encode() if admin_key else None
        self._admin = admin_principal(DEFAULT_ACCOUNT, hash_token(admin_key)) if admin_key else None
        self._cached: dict[bytes, tuple[Principal, float]] = {}
        self._pending: dict[bytes, asyncio.Task[Principal]] = {}
        self._used: dict[tuple[str, str], Instant] = {}
        self._changes = 0.0
        """The changes of keys when the cache was last used."""

    def known_account(self, request: Request) -> str | None:
        """The account of a key that was valid at its last use, or of the admin key; None for any other caller."""
        headers = request.headers
        cached = self._cached.get(headers.get(b"authorization", b"")[len(_BEARER) :])
        if cached is not None:
            return cached[0].account
        if self._admin_key is None:
            return None
        sent = headers.get(b"x-admin-key", headers.get(b"x-octostore-admin-key", b""))
        return DEFAULT_ACCOUNT if hmac.compare_digest(sent, self._admin_key) else None

    def check_cached(self, request: Request) -> bool:
        """Set the request's principal if its key is in the cache: the usual case, without a coroutine."""
        headers = request.headers
        header = headers.get(b"authorization", b"")
        token = header[len(_BEARER) :]
        cached = self._cached.get(token)
        if cached is None or cached[1] <= time.monotonic() or not header.startswith(_BEARER):
            return False
        if self._registry.total(KEY_CHANGES) != self._changes or b"x-admin-key" in headers:
            return False
        if b"x-octostore-admin-key" in headers:
            return False
        request.principal, request.secret = cached[0], token
        return True

    async def check(self, request: Request) -> None:
        """Set the request's principal, or refuse. The admin key takes precedence over a bearer key."""
        sent = request.headers.get(b"x-admin-key", request.headers.get(b"x-octostore-admin-key"))
        if sent is not None and self._admin_key is not None and hmac.compare_digest(sent, self._admin_key):
            request.principal, request.secret = self._admin, sent
            return
        header = request.headers.get(b"authorization", b"")
        if not header.startswith(_BEARER) or len(header) == len(_BEARER):
            raise Unauthenticated("a bearer token is required")
        token = header[len(_BEARER) :]
        request.principal, request.secret = await self._check_bearer(token), token

    async def check_operator(self, request: Request) -> None:
        """Admit the operator of this server: the admin key, or a key with scope admin of the default account.

        The admin key may also be sent as `Bearer admin:<key>`, unless one of its headers is present.
        """
        header = request.headers.get(b"authorization", b"")
        has_no_admin_header = b"x-admin-key" not in request.headers and b"x-octostore-admin-key" not in request.headers
        if has_no_admin_header and self._admin_key is not None and header.startswith(_ADMIN_BEARER):
            sent = header[len(_ADMIN_BEARER) :]
            if hmac.compare_digest(sent, self._admin_key):
                request.principal, request.secret = self._admin, sent
                return
        await self.check(request)
        if request.by.account != DEFAULT_ACCOUNT:
            raise Forbidden("only the operator of this server may read this", scope="admin")
        check_scope(request, "admin")

    async def principal_of(self, key: str) -> Principal:
        """The principal of a key that was not sent in a header; it may be the admin key."""
        sent = key.encode()
        if self._admin is not None and self._admin_key is not None and hmac.compare_digest(sent, self._admin_key):
            return self._admin
        return await self._check_bearer(sent)

    async def _check_bearer(self, token: bytes) -> Principal:
        if self._registry.total(KEY_CHANGES) != self._changes:
            self._expire()
        cached = self._cached.get(token)
        if cached is not None and cached[1] > time.monotonic():
            return cached[0]
        principal = await asyncio.shield(self._look_up(token))
        self._used[principal.account, principal.id] = time.time_ns() // 1000
        return principal

    def _look_up(self, token: bytes) -> asyncio.Future[Principal]:
        """The look-up of a key; requests with the same key share one."""
        pending = self._pending.get(token)
        if pending is None:
            pending = self._pending[token] = asyncio.ensure_future(self._find_key(token))
            pending.add_done_callback(lambda done: self._end_look_up(token, done))
        return pending

    def _end_look_up(self, token: bytes, done: asyncio.Task[Principal]) -> None:
        if self._pending.get(token) is done:
            del self._pending[token]
        if not done.cancelled():
            done.exception()  # marked as retrieved: every caller may have disconnected

    async def _find_key(self, token: bytes) -> Principal:
        if not token.isascii() or any(byte < 0x20 or byte == 0x7F for byte in token):
            raise Unauthenticated("a bearer token must consist of visible ASCII characters")
        text = token.decode()
        known, changes = token in self._cached, self._registry.total(KEY_CHANGES)
        principal = await self._find(hash_token(text), known) if is_well_formed(text) else None
        self._cached.pop(token, None)
        if principal is None:
            raise UnknownKey("no such key")
        while len(self._cached) >= CACHE_SIZE:
            del self._cached[next(iter(self._cached))]  # the one whose look-up is the longest ago
        is_current = changes == self._registry.total(KEY_CHANGES)  # else it may have been read before a change
        seconds = _cache_seconds(principal, hash_token(text)) if is_current else 0.0
        self._cached[token] = (principal, time.monotonic() + seconds)
        return principal

    def _expire(self) -> None:
        """Look every key up again, and share no look-up that began before a key changed."""
        self._changes = self._registry.total(KEY_CHANGES)
        self._cached = {token: (principal, 0.0) for token, (principal, _) in self._cached.items()}
        self._pending = {}

    def note_change(self) -> None:
        """Let a changed key take effect in every worker process of this server at once."""
        self._registry.add(KEY_CHANGES)

    def take_uses(self) -> dict[tuple[str, str], Instant]:
        """When each key was last used since the previous call, to within the seconds of the cache."""
        used, self._used = self._used, {}
        return used


def _cache_seconds(principal: Principal, key_hash: str) -> float:
    """How long a key is cached: not longer than it works."""
    end = works_until(principal, key_hash)
    return CACHE_SECONDS if end is None else min(CACHE_SECONDS, max(end - wall_clock(), 0) / SECOND)


def check_scope(request: Request, scope: str) -> None:
    """Refuse a caller whose key lacks a scope."""
    if not request.by.may(scope):
        raise Forbidden(f"this key lacks the scope {scope}", scope=scope)
