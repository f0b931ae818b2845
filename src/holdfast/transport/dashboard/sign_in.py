"""The gate: for a key or an invitation a visit begins, which ends with its key, with rest, or with the day."""

from __future__ import annotations

import hmac
import secrets

from msgspec.structs import replace

from holdfast.core import browser_session as badges
from holdfast.core import principal as principals
from holdfast.core.acl import hash_token
from holdfast.core.browser_session import SESSION, SIGN_IN_LINK, BrowserSession
from holdfast.core.errors import Unauthenticated
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.principal import ADMIN_ID, Principal
from holdfast.core.row import Instant
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import cookies
from holdfast.transport.dashboard.bulk import Bulks
from holdfast.transport.dashboard.cache import Cache
from holdfast.transport.dashboard.forms import form_token
from holdfast.transport.dashboard.page import Visit
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Header, Request

SECRET_BYTES = 32
MAX_KEY = 512


class SignIn:
    """Lets visitors in and sees them out."""

    def __init__(self, ctx: HandlerContext) -> None:
        self._door = ctx
        key = ctx.settings.admin_key
        self._admin = principals.admin_principal(DEFAULT_ACCOUNT, hash_token(key)) if key else None
        self._bulks = Bulks(ctx, self.bearer)
        self._lately = Cache()

    async def find(self, request: Request) -> Visit | None:
        """Who is visiting, if their visit is not over."""
        secret = cookies.read(request, self._cookie(request))
        if not secret:
            return None
        browser_session, principal, now = await self._door.read(lambda reader: self._look(reader, hash_token(secret)))
        if (
            browser_session is None
            or principal is None
            or browser_session.kind != SESSION
            or badges.is_expired(browser_session, now)
        ):
            return None
        visit = Visit(
            self._door, request, browser_session, principal, form_token(secret), bulks=self._bulks, cache=self._lately
        )
        if visit.is_awake and badges.needs_seen_update(browser_session, now):
            await self._door.beside_the_log(
                lambda store: store.save_browser_session(replace(browser_session, seen_at=now))
            )
        return visit

    async def sign_in(self, request: Request, key: str) -> Header:
        """Begin a visit for whoever shows a key; the cookie to set. Guessing is slowed, a valid key never is."""
        self._door.network.check_secret(request)
        try:
            principal = await self._door.holder(key.strip()[:MAX_KEY])
        except Unauthenticated:
            self._door.network.slow_down(request)
            raise
        return await self._begin(request, principal.account, principal.id, hash_token(key.strip()))

    async def enter(self, request: Request, secret: str) -> Header:
        """Begin a visit for whoever shows an invitation, which is then used up."""
        self._door.network.check_secret(request)
        taken = await self._door.beside_the_log(lambda store: store.take_browser_session(hash_token(secret)))
        now = await self._door.read(lambda reader: reader.now)
        if taken is None or taken.kind != SIGN_IN_LINK or badges.is_expired(taken, now):
            self._door.network.slow_down(request)
            raise Unauthenticated("this link has been used, or is older than 10 minutes")
        return await self._begin(request, taken.account, taken.principal, taken.key_hash)

    async def bearer(self, browser_session: BrowserSession) -> Principal | None:
        """Whoever wears a badge, as long as its key works; however long ago they looked."""
        return await self._door.read(lambda reader: self._bearer(reader, browser_session))

    async def leave(self, visit: Visit) -> Header:
        """End the visit; the cookie that says so."""
        await self._door.beside_the_log(lambda store: store.take_browser_session(visit.browser_session.id))
        return cookies.clear_visit(self._cookie(visit.request))

    async def _begin(self, request: Request, account: str, principal: str, key_hash: str) -> Header:
        secret = secrets.token_urlsafe(SECRET_BYTES)
        now = await self._door.read(lambda reader: reader.now)
        browser_session = BrowserSession(
            hash_token(secret), SESSION, account, principal, key_hash, made_at=now, seen_at=now
        )
        await self._door.beside_the_log(lambda store: store.save_browser_session(browser_session))
        return cookies.set_visit(self._cookie(request), secret)

    def _cookie(self, request: Request) -> str:
        encrypted = self._door.network.is_encrypted(request)
        return cookies.visit_name(self._door.settings.port, encrypted=encrypted)

    def _look(self, reader: Reader, badge_id: str) -> tuple[BrowserSession | None, Principal | None, Instant]:
        browser_session = reader.browser_session(badge_id)
        return browser_session, None if browser_session is None else self._bearer(reader, browser_session), reader.now

    def _bearer(self, reader: Reader, browser_session: BrowserSession) -> Principal | None:
        """Whoever wears a badge, as long as the key it was given for still opens something."""
        if browser_session.principal == ADMIN_ID:  # configured, never stored
            known = self._admin is not None and self._admin.key_hash is not None
            matches = known and hmac.compare_digest(self._admin.key_hash, browser_session.key_hash)  # type: ignore[union-attr,type-var]
            return self._admin if matches else None
        found = reader.row(Principal, browser_session.account, browser_session.principal)
        return (
            found if found is not None and principals.accepts_key(found, browser_session.key_hash, reader.now) else None
        )
