"""The two cookies: who is visiting, and whether they like it light or dark."""

from __future__ import annotations

from holdfast.core.browser_session import MAX_LIFETIME
from holdfast.core.row import SECOND
from holdfast.transport.http.request import Header, Request

THEME = "holdfast-theme"
THEMES = ("light", "dark")

_YEAR = 365 * 24 * 3600


def read(request: Request, name: str) -> str | None:
    """A cookie by its name."""
    for header, value in request.scope["headers"]:
        if header == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                known, _, text = pair.strip().partition("=")
                if known == name:
                    return str(text)
    return None


def visit_name(port: int, *, encrypted: bool) -> str:
    """Over https a name that browsers protect. On this machine, where every port shares its cookies, the port too."""
    return "__Host-holdfast" if encrypted else f"holdfast-{port}"


def set_visit(name: str, secret: str) -> Header:
    """Show this secret with every request; no script can read it, no other site can send it."""
    return _set(name, secret, MAX_LIFETIME // SECOND, http_only=True)


def clear_visit(name: str) -> Header:
    """The visit is over."""
    return _set(name, "", 0, http_only=True)


def set_theme(theme: str) -> Header:
    """Light, dark, or with any other word what the system likes."""
    return _set(THEME, theme if theme in THEMES else "", _YEAR if theme in THEMES else 0)


def _set(name: str, value: str, seconds: int, *, http_only: bool = False) -> Header:
    told = f"{name}={value}; Path=/; Max-Age={seconds}; SameSite=Strict"
    told += "; HttpOnly" if http_only else ""
    told += "; Secure" if name.startswith("__Host-") else ""
    return (b"set-cookie", told.encode())
