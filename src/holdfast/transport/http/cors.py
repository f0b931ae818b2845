"""Cross-origin requests of browsers: preflights, and which origins may read answers.

Answers to other origins are the same, but without `access-control-allow-origin`: browsers then keep them from the page.
Cookies are never accepted from other origins.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.transport.http.request import Header, Request, Response

VARY = (b"vary", b"origin, access-control-request-method, access-control-request-headers")
EXPOSE = (b"access-control-expose-headers", b"retry-after,x-request-id")
_REQUEST_HEADERS = (
    *(b"authorization", b"content-type", b"x-admin-key", b"x-octostore-admin-key", b"idempotency-key"),
    *(b"last-event-id", b"x-request-id", b"mcp-protocol-version", b"mcp-session-id"),
)
_PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"GET,POST,PUT,DELETE,PATCH"),
    (
        b"access-control-allow-headers",
        b",".join(_REQUEST_HEADERS),
    ),
    (b"access-control-max-age", b"600"),
)


class AllowedOrigins:
    """The origins whose pages may read answers."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def headers(self, request: Request) -> tuple[Header, ...]:
        """The header that allows the origin of a request, if it is one of them."""
        if not self._origins:
            return ()
        origin = request.headers.get(b"origin")
        return ((b"access-control-allow-origin", origin),) if origin in self._origins else ()


def preflight(allow: tuple[Header, ...]) -> Response:
    """The answer to OPTIONS on any path, with the methods of the path if there is one."""
    return Response(200, b"", (*_PREFLIGHT, *allow), b"")
