"""Invitations: a link that signs a browser in once. Whoever starts a server is shown one for its administrator."""

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

_FIRST = {ROOT: 0, ISSUED: 1}


def invite(engine: Engine, settings: Settings) -> str | None:
    """A link for the administrator of the server's own account; None if nobody is."""

    def look(reader: Reader) -> tuple[list[Principal], Instant]:
        return reader.principals(DEFAULT_ACCOUNT), reader.now

    known, now = engine.read(look)
    able = [each for each in known if each.source in _FIRST and each.may("admin") and _works(each, now)]
    if able:
        host = min(able, key=lambda each: (_FIRST[each.source], each.created_at, each.id))
    elif settings.admin_key is not None:
        host = principals.admin_principal(DEFAULT_ACCOUNT, hash_token(settings.admin_key))
    else:
        return None
    return link(engine.store, settings, host, host.key_hash or "", now)


def link(store: Store, settings: Settings, guest: Principal, key_hash: str, now: Instant) -> str:
    """A link that signs its guest in once, for as long as that key works."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    store.save_browser_session(
        BrowserSession(hash_token(secret), SIGN_IN_LINK, guest.account, guest.id, key_hash, made_at=now, seen_at=now)
    )
    return f"{settings.home}/ui/enter/{secret}"


def _works(principal: Principal, now: Instant) -> bool:
    return principal.key_hash is not None and principals.accepts_key(principal, principal.key_hash, now)
