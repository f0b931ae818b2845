"""A principal: whoever a credential stands for. Identity comes from the key, never from a label."""

from __future__ import annotations

import binascii
import hmac
import string
from typing import ClassVar

from msgspec.structs import replace

from holdfast.core.row import Instant, Row

ALL_SCOPES = "admin jobs tasks"
WORK_SCOPES = "jobs tasks"

ROOT, STATIC, ISSUED = "root", "static", "issued"

ADMIN_ID = "00000000-0000-0000-0000-000000000000"
"""The principal behind the admin key: OctoStore's all-zero user."""

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


class Principal(Row, frozen=True):
    """A named holder of one credential."""

    table: ClassVar[str] = "principals"
    noun: ClassVar[str] = "principal"
    hashed: ClassVar[frozenset[str]] = frozenset({"key_hash", "old_key_hash"})

    name: str = ""
    source: str = ISSUED
    key_hash: str | None = None
    scopes: str = WORK_SCOPES
    namespace: str | None = None
    created_at: Instant = 0
    revoked_at: Instant | None = None
    shown: str = ""
    """What may be shown of its key: the beginning and the end."""
    prefix: str | None = None
    """The names of jobs and locks it uses must begin with this."""
    expires_at: Instant | None = None
    old_key_hash: str | None = None
    """The key before the last rotation, which still works until `old_until`."""
    old_until: Instant | None = None

    def may(self, scope: str) -> bool:
        """Whether its key opens doors marked with this scope; an administrator's opens all of its account."""
        scopes = self.scopes.split()
        return scope in scopes or "admin" in scopes


def admin(account: str, key_hash: str) -> Principal:
    """Who the admin key stands for; it is configured, never stored."""
    return Principal(account, ADMIN_ID, version=1, name="admin", source=ROOT, key_hash=key_hash, scopes=ALL_SCOPES)


def opens(principal: Principal, key_hash: str, now: Instant) -> bool:
    """Whether a key stands for this principal just now: its own, or until then the one before the last rotation."""
    if principal.revoked_at is not None or (principal.expires_at is not None and principal.expires_at <= now):
        return False
    is_old = principal.old_key_hash == key_hash and principal.old_until is not None and principal.old_until > now
    return principal.key_hash == key_hash or is_old


def revoke(principal: Principal, now: Instant) -> Principal:
    """Its key stops working; what it did stays in the log under its id."""
    return replace(principal, revoked_at=now)


def format_key(random: bytes, kind: str = "live") -> str:
    """A key with a checksum, so that a mistyped one is refused without a look-up: hf_live_<32>_<6>."""
    body = base62(int.from_bytes(random, "big"), 32)
    return f"hf_{kind}_{body}_{_checksum(kind, body)}"


def is_well_formed(key: str) -> bool:
    """Whether a key that looks like ours has its right checksum. Keys of other forms are static tokens."""
    if not key.startswith(("hf_live_", "hf_test_")):
        return True
    _, kind, body, checksum = [*key.split("_"), "", "", ""][:4]
    return hmac.compare_digest(_checksum(kind, body), checksum)


def base62(number: int, width: int) -> str:
    """A number in digits and letters, cut or filled to a width."""
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return "".join(reversed(digits))


def _checksum(kind: str, body: str) -> str:
    return base62(binascii.crc32(f"{kind}_{body}".encode()), 6)
