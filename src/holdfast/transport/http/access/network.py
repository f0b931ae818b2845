"""Who is at the other end of a connection, and whether a key may travel that way.

A peer's address cannot be made up; headers can. So headers are believed from the proxies that the settings name, and
from no one else.
"""

from __future__ import annotations

import re

from holdfast.addresses import is_loopback, neighbourhood, parse, parse_block
from holdfast.core.errors import InsecureTransport
from holdfast.settings import Settings
from holdfast.transport.http.access.rate_window import Windows
from holdfast.transport.http.request import Request

FAILED_SIGN_INS = 20
"""A minute and address; more are answered 429."""

_WITH_PORT = re.compile(r"\[([0-9a-fA-F:.]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+")


class Network:
    """What the settings say about the way between callers and this server."""

    def __init__(self, settings: Settings) -> None:
        self._trusted = tuple(map(parse_block, settings.trusted_proxies))
        self._any_way = settings.allow_insecure_http
        self._elections = Windows(settings.public_election_requests_per_minute)
        self._failures = Windows(FAILED_SIGN_INS)

    def check_way(self, request: Request) -> None:
        """Refuse a key that others could have read on its way, before anybody looks at it.

        What counts is the connection: it is encrypted, or it never left this machine, or it comes from a proxy that
        says that its own side was encrypted.
        """
        if not self._any_way and _has_credential(request):
            self.check_secret(request)

    def check_secret(self, request: Request) -> None:
        """The same for a request that has a key in its body, or whose answer sets a cookie."""
        peer = _peer(request)
        if not (self._any_way or self.is_encrypted(request) or peer is None or is_loopback(peer)):
            raise InsecureTransport("a key must not travel over plain HTTP; use https")

    def is_encrypted(self, request: Request) -> bool:
        """Whether the browser's own side of the connection is https."""
        if request.scope.get("scheme") == "https":
            return True
        peer = _peer(request)
        return peer is not None and self._trusts(peer) and _says_https(request)

    def client(self, request: Request) -> str:
        """Whom to count: the peer, or whom a proxy names that may be believed."""
        peer = _peer(request)
        if peer is None:
            return "unknown"
        if self._trusts(peer) and (hops := _listed(request, b"x-forwarded-for")):
            return self._first_stranger(peer, hops)
        named = request.headers.get(b"cf-connecting-ip")
        if named is not None and is_loopback(peer):
            address = parse(named.decode("latin-1").strip())
            return peer if address is None else str(address)
        return peer

    def admit(self, request: Request) -> None:
        """Count somebody who makes or contests an election."""
        self._elections.count(self.client(request))

    def count_failure(self, request: Request) -> None:
        """Count a sign-in that failed; with too many of them, refuse to say more. A valid key never comes here."""
        if _has_credential(request):
            self.slow_down(request)

    def slow_down(self, request: Request) -> None:
        """Count a guess at a secret, wherever it was sent."""
        client = self.client(request)
        if not is_loopback(client):
            self._failures.count(neighbourhood(client))

    def _first_stranger(self, peer: str, hops: list[str]) -> str:
        """Each proxy adds its caller at the end. Read from there, the first one we do not know is the client."""
        known = peer
        for hop in reversed(hops):
            match = _WITH_PORT.fullmatch(hop)
            address = parse((match[1] or match[2]) if match else hop)
            if address is None:
                return known  # whoever wrote that cannot be believed any further
            known = str(address)
            if not self._trusts(known):
                return known
        return known

    def _trusts(self, text: str) -> bool:
        if not self._trusted:
            return False
        address = parse(text)
        return address is not None and any(address in block for block in self._trusted)


def _has_credential(request: Request) -> bool:
    """Whether a key was sent, good or bad. Asked for every request, so it is spelled out."""
    headers = request.headers
    return b"authorization" in headers or b"x-admin-key" in headers or b"x-octostore-admin-key" in headers


def _peer(request: Request) -> str | None:
    """The address at the other end of the connection; None on a socket that has none, which is on this machine."""
    peer = request.scope.get("client")
    return peer[0] if peer else None


def _says_https(request: Request) -> bool:
    """Whether every proxy on the way heard its caller over https."""
    said = _listed(request, b"x-forwarded-proto")
    return bool(said) and all(word.lower() == "https" for word in said)


def _listed(request: Request, name: bytes) -> list[str]:
    """The words of a header that is a list, over all lines that have it."""
    lines = [value.decode("latin-1") for header, value in request.scope["headers"] if header == name]
    return [word for line in lines for entry in line.split(",") if (word := entry.strip())]
