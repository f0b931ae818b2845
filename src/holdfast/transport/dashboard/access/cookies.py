"""The dashboard's cookies: the browser session's secret and the colour theme."""

from __future__ import annotations

from holdfast.core.browser_session import MAX_LIFETIME
from holdfast.core.row import SECOND
from holdfast.transport.http.request import Header, Request

THEME = "holdfast-theme"
THEMES = ("light", "dark")

_YEAR = 365 * 24 * 3600


def read(request: Request, name: str) -> str | None:
    """The value of a cookie."""
    for header, value in request.scope["headers"]:
        if header == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                found, _, text = pair.strip().partition("=")
                if found == name:
                    return str(text)
    return None


def session_cookie_name(port: int, *, encrypted: bool) -> str:
    """Over https, a name that browsers protect; else one with the port, because all ports of a host share cookies."""
    return "__Host-holdfast" if encrypted else f"holdfast-{port}"


def set_session(name: str, secret: str) -> Header:
    """The header that sets a session cookie, which scripts cannot read and other sites cannot send."""
    return _set(name, secret, MAX_LIFETIME // SECOND, http_only=True)


def clear_session(name: str) -> Header:
    """The header that deletes a session cookie."""
    return _set(name, "", 0, http_only=True)


def set_theme(theme: str) -> Header:
    """The header that sets the theme: light or dark; any other word deletes the cookie, and the system decides."""
    return _set(THEME, theme if theme in THEMES else "", _YEAR if theme in THEMES else 0)


def _set(name: str, value: str, seconds: int, *, http_only: bool = False) -> Header:
    cookie = f"{name}={value}; Path=/; Max-Age={seconds}; SameSite=Strict"
    cookie += "; HttpOnly" if http_only else ""
    cookie += "; Secure" if name.startswith("__Host-") else ""
    return (b"set-cookie", cookie.encode())
