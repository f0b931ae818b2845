"""Allowed destinations of webhooks: the public internet, unless the operator allows private addresses.

A URL chosen by a client must not reach addresses that only this server can reach. Host names are checked when a webhook
is created; the addresses they resolve to are checked again at every attempt, because a name may change.
"""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import quote, urlsplit

import msgspec

from holdfast.core.limits import MAX_WEBHOOK_URL

Address = IPv4Address | IPv6Address

HTTPS_PORT, HTTP_PORT = 443, 80

_CLOSED_IPV4 = [IPv4Network(block) for block in (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/16",
    "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
)]  # fmt: skip
"""Special blocks, those of cloud metadata services, and the address at which Azure answers its own machines."""
_OPEN_IPV6 = IPv6Network("2000::/3")
_CLOSED_IPV6 = [IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]
"""Within the assigned range: tunnels that carry IPv4, and documentation addresses."""

_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_UNQUOTED = "/%:@!$&'()*+,;=~-._"


class Target(msgspec.Struct, frozen=True):
    """A parsed URL."""

    url: str
    """The normalised URL, as stored and displayed."""
    scheme: str
    host: str
    port: int
    address: str | None
    """The IP address, if the host is one."""


def is_public(text: str) -> bool:
    """Whether an IP address is on the public internet, by our own lists of blocks."""
    try:
        address: Address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return address in _OPEN_IPV6 and not any(address in block for block in _CLOSED_IPV6)
        address = address.ipv4_mapped
    return not any(address in block for block in _CLOSED_IPV4)


def parse_url(text: str) -> Target | str:
    """The URL in its normal form, or what is wrong with it."""
    problem = "must be a URL like https://example.com/path"
    if len(text) > MAX_WEBHOOK_URL or any(character <= " " or character == "\x7f" for character in text):
        return problem
    try:
        parts = urlsplit(text)
        port = parts.port
        host = _normalise_host(parts.hostname or "")
        address = _literal_address(host)
    except (ValueError, UnicodeError):
        return problem
    if parts.scheme not in {"https", "http"} or not host:
        return problem
    if parts.username is not None or parts.password is not None:
        return "must not contain a user or a password"
    default_port = HTTPS_PORT if parts.scheme == "https" else HTTP_PORT
    host_text = f"[{address}]" if address is not None and ":" in address else address or host
    authority = host_text if port in {None, default_port} else f"{host_text}:{port}"
    path = quote(parts.path, safe=_UNQUOTED) or "/"
    query = f"?{quote(parts.query, safe=_UNQUOTED + '?')}" if parts.query else ""
    return Target(f"{parts.scheme}://{authority}{path}{query}", parts.scheme, host, port or default_port, address)


def url_problem(target: Target, *, private: bool) -> str | None:
    """What is wrong with a URL of a standard webhook, or None. `private`: the operator allows any address."""
    if private:
        return None
    if target.scheme != "https":
        return "must begin with https://"
    if target.port != HTTPS_PORT:
        return f"must use port {HTTPS_PORT}"
    if target.address is not None or target.host.rstrip(".") == "localhost":
        return "must have a public host name, not an IP address"
    return None


def octostore_url_problem(target: Target, *, private: bool) -> str | None:
    """What is wrong with a URL by OctoStore's rule, which allows any port and public IP addresses; or None."""
    if private:
        return None
    if target.scheme != "https":
        return "url must use https"
    if target.host == "localhost" or (target.address is not None and not is_public(target.address)):
        return "url must lead to the public internet"
    return None


def _normalise_host(text: str) -> str:
    """The host in lower case and ASCII. A trailing dot is kept."""
    if ":" in text:
        if "%" in text:  # a zone id: one of this machine's own networks
            raise ValueError(text)
        return str(IPv6Address(text))
    host = text.lower() if text.isascii() else text.encode("idna").decode().lower()
    labels = host.removesuffix(".").split(".")
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(text)
    return host


def _literal_address(host: str) -> str | None:
    """The IP address, if the host is one, in any form that resolvers accept: also 127.1 and 0x7f000001."""
    if ":" in host:
        return host
    if not _NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]):
        return None
    try:
        return socket.inet_ntoa(socket.inet_aton(host.removesuffix(".")))
    except OSError:
        raise ValueError(host) from None
