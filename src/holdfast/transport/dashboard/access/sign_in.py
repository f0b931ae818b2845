"""Sign-in: starts a browser session for a key or a sign-in link, and finds the session of a request.

A browser session ends with its key, after a time without activity, and after a maximum lifetime.
"""

from __future__ import annotations

import hmac
import secrets

from holdfast.core import browser_session as browser_sessions
from holdfast.core import principal as principals
from holdfast.core.acl import hash_token
from holdfast.core.browser_session import SESSION, SIGN_IN_LINK, BrowserSession
from holdfast.core.errors import Unauthenticated
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.principal import ADMIN_ID, Principal
from holdfast.core.row import Instant
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.access import cookies
from holdfast.transport.dashboard.access.forms import form_token
from holdfast.transport.dashboard.bulk import BulkOperations
from holdfast.transport.dashboard.cache import Cache
from holdfast.transport.dashboard.page import PageRequest
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Header, Request

SECRET_BYTES = 32
MAX_KEY = 512


class SignIn:
    """Starts, finds and ends browser sessions."""

    def __init__(self, ctx: HandlerContext) -> None:
        self._ctx = ctx
        key = ctx.settings.admin_key
        self._admin = principals.admin_principal(DEFAULT_ACCOUNT, hash_token(key)) if key else None
        self._bulk_operations = BulkOperations(ctx, self.find_principal)
        self._cache = Cache()

    async def authenticate(self, request: Request) -> PageRequest | None:
        """The request with its browser session and key; None if it has no session or that has ended."""
        secret = cookies.read(request, self._cookie_name(request))
        if not secret:
            return None
        session, principal, now = await self._ctx.read(lambda reader: self._read_session(reader, hash_token(secret)))
        if session is None or principal is None or session.kind != SESSION or browser_sessions.is_expired(session, now):
            return None
        page_request = PageRequest(
            self._ctx,
            request,
            session,
            principal,
            form_token(secret),
            bulk_operations=self._bulk_operations,
            cache=self._cache,
        )
        if page_request.is_by_user and browser_sessions.needs_seen_update(session, now):
            await self._ctx.use_store(lambda store: store.update_browser_session(session.id, now))
        return page_request

    async def sign_in(self, request: Request, key: str) -> Header:
        """Start a browser session for a key; returns its cookie. Wrong keys are rate limited, valid ones never."""
        self._ctx.network.check_secret(request)
        try:
            principal = await self._ctx.access.principal_of(key.strip()[:MAX_KEY])
        except Unauthenticated:
            self._ctx.network.count_wrong_secret(request)
            raise
        return await self._start(request, principal.account, principal.id, hash_token(key.strip()))

    async def use_link(self, request: Request, secret: str) -> Header:
        """Start a browser session for a sign-in link, which works once; returns its cookie."""
        self._ctx.network.check_secret(request)
        link = await self._ctx.use_store(lambda store: store.take_browser_session(hash_token(secret)))
        now = await self._ctx.read(lambda reader: reader.now)
        if link is None or link.kind != SIGN_IN_LINK or browser_sessions.is_expired(link, now):
            self._ctx.network.count_wrong_secret(request)
            raise Unauthenticated("this link has been used, or is older than 10 minutes")
        return await self._start(request, link.account, link.principal, link.key_hash)

    async def find_principal(self, session: BrowserSession) -> Principal | None:
        """The principal of a browser session, while its key works; also after the session itself has ended."""
        return await self._ctx.read(lambda reader: self._read_principal(reader, session))

    async def sign_out(self, page_request: PageRequest) -> Header:
        """End the browser session; returns the header that deletes its cookie."""
        await self._ctx.use_store(lambda store: store.take_browser_session(page_request.browser_session.id))
        return cookies.clear_session(self._cookie_name(page_request.http))

    async def _start(self, request: Request, account: str, principal: str, key_hash: str) -> Header:
        secret = secrets.token_urlsafe(SECRET_BYTES)
        now = await self._ctx.read(lambda reader: reader.now)
        session = BrowserSession(hash_token(secret), SESSION, account, principal, key_hash, made_at=now, seen_at=now)
        await self._ctx.use_store(lambda store: store.save_browser_session(session))
        return cookies.set_session(self._cookie_name(request), secret)

    def _cookie_name(self, request: Request) -> str:
        encrypted = self._ctx.network.is_encrypted(request)
        return cookies.session_cookie_name(self._ctx.settings.port, encrypted=encrypted)

    def _read_session(self, reader: Reader, session_id: str) -> tuple[BrowserSession | None, Principal | None, Instant]:
        session = reader.browser_session(session_id)
        return session, None if session is None else self._read_principal(reader, session), reader.now

    def _read_principal(self, reader: Reader, session: BrowserSession) -> Principal | None:
        """The principal of a browser session, if the key that started it still works."""
        if session.principal == ADMIN_ID:  # configured, never stored
            admin = self._admin
            if admin is None or admin.key_hash is None:
                return None
            return admin if hmac.compare_digest(admin.key_hash, session.key_hash) else None
        found = reader.row(Principal, session.account, session.principal)
        return found if found is not None and principals.accepts_key(found, session.key_hash, reader.now) else None
