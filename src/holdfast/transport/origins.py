"""The server's address for clients, and web origins that count as its own."""

from __future__ import annotations

from urllib.parse import urlsplit

from holdfast.addresses import is_loopback
from holdfast.settings import Settings

_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_ANY_ADDRESS = {"0.0.0.0", "::"}  # noqa: S104 - compared, never bound
_PORTS = {"http": 80, "https": 443}


def own_origins(settings: Settings) -> frozenset[str]:
    """Origins of pages that this server serves."""
    own = {origin_of(settings.url), origin_of(settings.home)}
    if is_loopback(settings.host) or settings.host in {"localhost", *_ANY_ADDRESS}:
        scheme = urlsplit(settings.url).scheme
        own |= {origin_of(f"{scheme}://{name}:{settings.port}") for name in _LOCAL}
    return frozenset(own)


def known_address(settings: Settings) -> str | None:
    """The address that clients use; None if none is configured and the server listens on every address."""
    return None if settings.public_url is None and settings.host in _ANY_ADDRESS else settings.home


def origin_of(url: str) -> str:
    """The Origin of a URL as browsers write it: without a path and without the default port."""
    parts = urlsplit(url.lower())
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = "" if parts.port in {None, _PORTS.get(parts.scheme)} else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"
