"""Access lists of names. An entry is `user:<name>` or `token:<bearer token>`; of a token only the hash is stored."""

from __future__ import annotations

import hashlib
import re

import msgspec

from holdfast.core.errors import Forbidden, Invalid
from holdfast.core.limits import MAX_ACL_ENTRIES
from holdfast.core.principal import ADMIN_ID, Principal
from holdfast.decoding import decode

MAX_ENTRY_BYTES = 256

_USER = re.compile(r"[A-Za-z0-9-]{1,64}")


def token_entry(token_hash: str) -> str:
    """The access-list entry of a token."""
    return f"token:{token_hash}"


def hash_token(token: str) -> str:
    """SHA-256 of a bearer token, as stored in access lists and in keys."""
    return hashlib.sha256(token.encode()).hexdigest()


def normalise(entries: list[str]) -> str:
    """The stored form of an access list: checked, trimmed, sorted, without duplicates, as JSON text."""
    if not 1 <= len(entries) <= MAX_ACL_ENTRIES:
        raise Invalid(f"acl.acquire needs 1 to {MAX_ACL_ENTRIES} entries")
    return msgspec.json.encode(sorted({_normalise_entry(entry.strip()) for entry in entries})).decode()


def _normalise_entry(entry: str) -> str:
    if len(entry.encode()) > MAX_ENTRY_BYTES:
        raise Invalid(f"an acl entry is at most {MAX_ENTRY_BYTES} bytes")
    kind, _, value = entry.partition(":")
    if kind == "token" and value:
        return token_entry(hash_token(value))
    if kind == "user" and _USER.fullmatch(value):
        return f"user:{value.lower()}"
    raise Invalid("an acl entry is user:<letters, digits, -> or token:<bearer token>")


def redact(acl: str) -> list[str]:
    """The entries for display: tokens are hidden."""
    entries: list[str] = decode(acl, list[str])
    return ["token:[redacted]" if entry.startswith("token:") else entry for entry in entries]


def check_allowed(acl: str | None, by: Principal) -> None:
    """Refuse a caller that is not on the list; the administrator is always allowed."""
    if acl is None or by.id == ADMIN_ID:
        return
    entries = decode(acl, list[str])
    if f"user:{by.name.lower()}" in entries:
        return
    if by.key_hash is not None and token_entry(by.key_hash) in entries:
        return
    raise Forbidden("the access list of this name does not include you")
