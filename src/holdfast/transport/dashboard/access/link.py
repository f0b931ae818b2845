"""Sign-in links: an address that signs a browser in once. The server prints one for its administrator at start."""

from __future__ import annotations

import secrets

from holdfast.core import principal as principals
from holdfast.core.acl import hash_token
from holdfast.core.browser_session import SIGN_IN_LINK, BrowserSession
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.principal import ISSUED, ROOT, Principal
from holdfast.core.row import Instant
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.store.contract import Reader, Store

SECRET_BYTES = 24

_SOURCE_ORDER = {ROOT: 0, ISSUED: 1}


def make_admin_link(engine: Engine, settings: Settings) -> str | None:
    """A link for the administrator of the server's own account; None if it has no administrator."""

    def read_principals(reader: Reader) -> tuple[list[Principal], Instant]:
        return reader.principals(DEFAULT_ACCOUNT), reader.now

    found, now = engine.read(read_principals)
    admins = [each for each in found if each.source in _SOURCE_ORDER and _administers(each) and _works(each, now)]
    if admins:
        admin = min(admins, key=lambda each: (_SOURCE_ORDER[each.source], each.created_at, each.id))
    elif settings.admin_key is not None:
        admin = principals.admin_principal(DEFAULT_ACCOUNT, hash_token(settings.admin_key))
    else:
        return None
    return make_link(engine.store, settings, admin, admin.key_hash or "", now)


def make_link(store: Store, settings: Settings, principal: Principal, key_hash: str, now: Instant) -> str:
    """A link that signs a browser in once as a principal; the browser session ends when the key stops working."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    store.save_browser_session(
        BrowserSession(
            hash_token(secret), SIGN_IN_LINK, principal.account, principal.id, key_hash, made_at=now, seen_at=now
        )
    )
    return f"{settings.home}/ui/enter/{secret}"


def _administers(principal: Principal) -> bool:
    """Whether it can administer the whole account."""
    return principal.may("admin") and principal.name_prefix is None


def _works(principal: Principal, now: Instant) -> bool:
    return principal.key_hash is not None and principals.accepts_key(principal, principal.key_hash, now)
