"""Addresses of machines, as text from settings, sockets and headers: read once, compared by what they mean."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Block = IPv4Network | IPv6Network

NEIGHBOURHOOD = 64
"""Bits of an IPv6 address that name a network; one household or attacker has all of the rest."""


@lru_cache(maxsize=4096)
def parse(text: str) -> Address | None:
    """The address, or None. An IPv4 address in IPv6's clothes, as a socket for both shows it, is an IPv4 address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


@lru_cache(maxsize=4096)
def is_loopback(text: str) -> bool:
    """Whether whoever has this address is on this machine."""
    address = parse(text)
    return address is not None and address.is_loopback


def parse_block(text: str) -> Block:
    """An address or a CIDR block; ValueError if it is neither, or if bits beyond its length are set."""
    return ip_network(text)


def neighbourhood(text: str) -> str:
    """Whom to count for an address: itself, or its network where addresses are given out by the billion."""
    address = parse(text)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), NEIGHBOURHOOD), strict=False))
    return text if address is None else str(address)


def url_problem(text: str) -> str | None:
    """Say what is wrong with an address that keys or people are sent to, or None."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return "expected https://host[/path]"
    host = parts.hostname or ""
    if parts.scheme not in {"https", "http"} or not host or any(character <= " " for character in text):
        return "expected https://host[/path]"
    if parts.scheme == "http" and not (host == "localhost" or is_loopback(host)):
        return "only https leads over a network; http is for this machine alone"
    if parts.username is not None or "?" in text or "#" in text:
        return "a user, a query or a fragment has no place in it"
    return None
