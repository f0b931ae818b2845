"""Who is asking: a bearer key or the admin key. Nothing about labels, everything about credentials."""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable

from holdfast.core.acl import hash_token
from holdfast.core.errors import Forbidden, Unauthenticated, UnknownKey
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.principal import Principal, admin_principal, is_well_formed
from holdfast.core.row import Instant
from holdfast.transport.http.request import Request

CACHE_SECONDS = 5.0
CACHE_SIZE = 10_000

_AS_BEARER = b"Bearer admin:"

Find = Callable[[str], Awaitable[Principal | None]]


class Authenticator:
    """Knows keys for five seconds, so that a revoked one stops working almost at once."""

    def __init__(self, find: Find, admin_key: str | None) -> None:
        self._find = find
        self._admin_key = admin_key.encode() if admin_key else None
        self._admin = admin_principal(DEFAULT_ACCOUNT, hash_token(admin_key)) if admin_key else None
        self._known: dict[bytes, tuple[Principal, float]] = {}
        self._seen: dict[tuple[str, str], Instant] = {}

    async def check(self, request: Request) -> None:
        """Put the caller on the request, or refuse. The admin key wins over any bearer."""
        sent = request.headers.get(b"x-admin-key", request.headers.get(b"x-octostore-admin-key"))
        if sent is not None and self._admin_key is not None and hmac.compare_digest(sent, self._admin_key):
            request.principal, request.secret = self._admin, sent
            return
        header = request.headers.get(b"authorization", b"")
        if not header.startswith(b"Bearer ") or len(header) == len(b"Bearer "):
            raise Unauthenticated("a bearer token is required")
        token = header[len(b"Bearer ") :]
        request.principal, request.secret = await self._bearer(token), token

    async def check_operator(self, request: Request) -> None:
        """The same for whoever runs this server: the admin key, or an administrator's of the account it came with.

        Here the admin key may also come as `Bearer admin:<key>`, unless a header of its own was sent.
        """
        header = request.headers.get(b"authorization", b"")
        alone = b"x-admin-key" not in request.headers and b"x-octostore-admin-key" not in request.headers
        if alone and self._admin_key is not None and header.startswith(_AS_BEARER):
            sent = header[len(_AS_BEARER) :]
            if hmac.compare_digest(sent, self._admin_key):
                request.principal, request.secret = self._admin, sent
                return
        await self.check(request)
        if request.by.account != DEFAULT_ACCOUNT:
            raise Forbidden("only whoever runs this server may see this", scope="admin")
        check_scope(request, "admin")

    async def holder(self, key: str) -> Principal:
        """Whom a key stands for that did not come in a header; the admin key is one of them."""
        sent = key.encode()
        if self._admin is not None and self._admin_key is not None and hmac.compare_digest(sent, self._admin_key):
            return self._admin
        return await self._bearer(sent)

    async def _bearer(self, token: bytes) -> Principal:
        known = self._known.get(token)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        principal = await self._look_up(token)
        self._seen[principal.account, principal.id] = time.time_ns() // 1000
        return principal

    async def _look_up(self, token: bytes) -> Principal:
        if not token.isascii() or any(byte < 0x20 or byte == 0x7F for byte in token):  # noqa: PLR2004 - control codes
            raise Unauthenticated("a bearer token is visible ASCII")
        text = token.decode()
        principal = await self._find(hash_token(text)) if is_well_formed(text) else None
        if principal is None:
            self._known.pop(token, None)
            raise UnknownKey("no such key")
        if len(self._known) >= CACHE_SIZE:
            self._known.clear()
        self._known[token] = (principal, time.monotonic() + CACHE_SECONDS)
        return principal

    def forget(self, principal: Principal) -> None:
        """Its keys changed: what is known of them holds no longer, here at once."""
        self._known = {token: known for token, known in self._known.items() if known[0].id != principal.id}

    def seen(self) -> dict[tuple[str, str], Instant]:
        """Which keys were seen since this was last asked, and when, to within the seconds they are known for."""
        seen, self._seen = self._seen, {}
        return seen


def check_scope(request: Request, scope: str) -> None:
    """Refuse a caller whose key does not open this door."""
    if not request.by.may(scope):
        raise Forbidden(f"this key lacks the scope {scope}", scope=scope)
