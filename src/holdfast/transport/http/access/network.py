"""The client's address, and whether the connection is safe enough for a key.

A peer's address cannot be forged; headers can. So forwarding headers are used only if the peer is one of the trusted
proxies in the settings. One exception: `X-Forwarded-Proto` from this machine is always used, because it can only make
the rules for a local connection stricter.
"""

from __future__ import annotations

import re

from holdfast.addresses import is_loopback, parse, parse_block, rate_limit_key
from holdfast.core.errors import InsecureTransport, RateLimited
from holdfast.settings import Settings
from holdfast.transport.http.access.rate_window import FixedWindowLimit
from holdfast.transport.http.request import Request

FAILED_SIGN_INS = 20
"""Per minute and address; more are answered 429."""

REGISTRATIONS = 60
"""Users that one address may register in a minute."""

_WITH_PORT = re.compile(r"\[([0-9a-fA-F:.]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+")


class Network:
    """Rules about connections, from the settings."""

    def __init__(self, settings: Settings) -> None:
        self._trusted = tuple(map(parse_block, settings.trusted_proxies))
        self._allows_plain_http = settings.allow_insecure_http
        self._elections = FixedWindowLimit(settings.public_election_requests_per_minute)
        self._failures = FixedWindowLimit(FAILED_SIGN_INS)
        self._registrations = FixedWindowLimit(REGISTRATIONS)

    def check_transport(self, request: Request) -> None:
        """Refuse a request whose key could have been read on its way, before the key is checked.

        The connection must be encrypted, or local to this machine, or come from a trusted proxy that reports that its
        client's connection was encrypted.
        """
        if not self._allows_plain_http and has_credential(request):
            self.check_secret(request)

    def check_secret(self, request: Request) -> None:
        """The same check for a request with a key in its body, or whose answer sets a cookie."""
        if not self._trusted and b"x-forwarded-proto" not in request.headers and _is_this_machine(_peer(request)):
            return  # the usual case on one machine, without further looks
        if not (self._allows_plain_http or self.is_encrypted(request) or self._is_local(request)):
            raise InsecureTransport("a key must not be sent over plain HTTP; use https")

    def is_encrypted(self, request: Request) -> bool:
        """Whether the client's own connection is https."""
        if request.scope.get("scheme") == "https":
            return True
        if b"x-forwarded-proto" not in request.headers:
            return False
        peer = _peer(request)
        return (_is_this_machine(peer) or self._trusts(peer or "")) and _forwarded_https(request)

    def _is_local(self, request: Request) -> bool:
        """Whether the client is on this machine: no proxy here passed its request on for somebody elsewhere."""
        peer = _peer(request)
        if not _is_this_machine(peer):
            return False
        if b"x-forwarded-proto" in request.headers and _header_list(request, b"x-forwarded-proto"):
            return False  # `is_encrypted` has found that not every proxy received the request over https
        return peer is None or not self._trusts(peer) or is_loopback(self.client(request))

    def client(self, request: Request) -> str:
        """The client's address: the peer's, or the one that a trusted proxy names."""
        peer = _peer(request)
        if peer is None:
            return "unknown"
        if not self._trusts(peer):
            return peer
        if hops := _header_list(request, b"x-forwarded-for"):
            return self._first_untrusted(peer, hops)
        address = parse(request.headers.get(b"cf-connecting-ip", b"").decode("latin-1").strip())
        return peer if address is None else str(address)

    def count_election_request(self, request: Request) -> None:
        """Count a request that creates an election or campaigns, or refuse it."""
        self._elections.count(self.client(request))

    def count_registration(self, request: Request) -> None:
        """Count the registration of a user, or refuse it; also on this machine, where alone it can be allowed."""
        self._registrations.count(rate_limit_key(self.client(request)))

    def begin_sign_in(self, request: Request) -> bool:
        """Count a sign-in with an unknown key as failed before it is looked up; False if its address failed too often.

        Counting afterwards would let any number of guesses begin at the same moment.
        """
        try:
            self.count_wrong_secret(request)
        except RateLimited:
            return False
        return True

    def uncount_failure(self, request: Request) -> None:
        """Stop counting a sign-in that did not fail."""
        self._failures.give_back(rate_limit_key(self.client(request)))

    def count_failure(self, request: Request) -> None:
        """Count a failed sign-in; after too many, answer 429. Requests with a valid key are never counted."""
        if has_credential(request):
            self.count_wrong_secret(request)

    def count_wrong_secret(self, request: Request) -> None:
        """Count a wrong secret, wherever it was sent."""
        client = self.client(request)
        if not is_loopback(client):
            self._failures.count(rate_limit_key(client))

    def _first_untrusted(self, peer: str, hops: list[str]) -> str:
        """Each proxy appends its caller, so the client is the last address that is not a trusted proxy."""
        known = peer
        for hop in reversed(hops):
            match = _WITH_PORT.fullmatch(hop)
            address = parse((match[1] or match[2]) if match else hop)
            if address is None:
                return known  # what comes before a malformed entry cannot be trusted
            known = str(address)
            if not self._trusts(known):
                return known
        return known

    def _trusts(self, text: str) -> bool:
        if not self._trusted:
            return False
        address = parse(text)
        return address is not None and any(address in block for block in self._trusted)


def has_credential(request: Request) -> bool:
    """Whether a key was sent, valid or not. It runs for every request, so it avoids a loop."""
    headers = request.headers
    return b"authorization" in headers or b"x-admin-key" in headers or b"x-octostore-admin-key" in headers


def _peer(request: Request) -> str | None:
    """The peer's address; None on a socket without addresses, which is local to this machine."""
    peer = request.scope.get("client")
    return peer[0] if peer else None


def _is_this_machine(peer: str | None) -> bool:
    return peer is None or is_loopback(peer)


def _forwarded_https(request: Request) -> bool:
    """Whether every proxy on the way received the request over https."""
    schemes = _header_list(request, b"x-forwarded-proto")
    return bool(schemes) and all(scheme.lower() == "https" for scheme in schemes)


def _header_list(request: Request, name: bytes) -> list[str]:
    """The entries of a comma-separated header, over all its lines."""
    lines = [value.decode("latin-1") for header, value in request.scope["headers"] if header == name]
    return [word for line in lines for entry in line.split(",") if (word := entry.strip())]
