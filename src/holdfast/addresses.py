"""IP addresses and URLs from settings, sockets and headers: parsing and checks."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Block = IPv4Network | IPv6Network

IPV6_NETWORK_BITS = 64
"""Prefix of an IPv6 address that identifies a network; one customer usually has all addresses within it."""


@lru_cache(maxsize=4096)
def parse(text: str) -> Address | None:
    """The address, or None. An IPv4-mapped IPv6 address, as a dual-stack socket reports it, becomes IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


@lru_cache(maxsize=4096)
def is_loopback(text: str) -> bool:
    """Whether it is an address of this machine."""
    address = parse(text)
    return address is not None and address.is_loopback


def own_host(host: str) -> str:
    """Where this machine reaches a server that listens on this address; all interfaces include the loopback one."""
    address = parse(host)
    if address is None or not address.is_unspecified:
        return host
    return "::1" if isinstance(address, IPv6Address) else "127.0.0.1"


def is_this_machine(address: str) -> bool:
    """Whether `host[:port][/path]`, without a scheme, is a loopback address."""
    try:
        host = urlsplit(f"//{address}").hostname or ""
    except ValueError:
        return False
    return host == "localhost" or is_loopback(host)


def parse_block(text: str) -> Block:
    """An address or a CIDR block; ValueError if it is neither, or if bits after the prefix are set."""
    return ip_network(text)


def rate_limit_key(text: str) -> str:
    """What to count for an address: an IPv4 address itself, or the /64 network of an IPv6 address."""
    address = parse(text)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), IPV6_NETWORK_BITS), strict=False))
    return text if address is None else str(address)


def url_problem(text: str) -> str | None:
    """What is wrong with the URL of a server, or None."""
    if "://" not in text:
        return f"expected a scheme as well: https://{text}"
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return "expected https://host[/path]"
    host = parts.hostname or ""
    if parts.scheme not in {"https", "http"} or not host or any(character <= " " for character in text):
        return "expected https://host[/path]"
    if parts.scheme == "http" and not (host == "localhost" or is_loopback(host)):
        return "must be https; http is allowed only for this machine"
    if parts.username is not None or "?" in text or "#" in text:
        return "must not contain a user, a query or a fragment"
    return None
