"""Principals: the identity behind a key. Identity comes from the key, never from a label."""

from __future__ import annotations

import binascii
import hmac
import string
from functools import lru_cache
from typing import ClassVar

from msgspec.structs import replace

from holdfast.core.errors import Forbidden
from holdfast.core.row import Instant, Row

SCOPES = {
    "admin": "everything in the account",
    "jobs": "jobs, files, locks and sessions",
    "tasks": "tasks and sessions",
    "tasks:produce": "create, cancel and requeue tasks",
    "tasks:work": "claim and finish tasks; sessions",
    "answer": "answer questions and approve tasks",
    "read": "read jobs, files, tasks, questions, sessions and events; change nothing",
}
ALL_SCOPES = "admin jobs tasks"
WORK_SCOPES = "jobs tasks"
MACHINE_SCOPES = "jobs tasks read"
"""Scopes of a machine's key: to work and to look, not to administer."""
ANY = "any"
"""The scope that every key has."""

ROOT, STATIC, ISSUED, LOCAL, ROTATED, MACHINE = "root", "static", "issued", "local", "rotated", "machine"
IMPORTED = "imported"
"""Where a key comes from: the admin key and the tokens in the settings, an administrator, registration by name, the
rotation of a configured token, a server that wrote it to the configuration of its user, and another server's store.
"""

ADMIN_ID = "00000000-0000-0000-0000-000000000000"
"""The principal behind the admin key: OctoStore's all-zero user."""

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


class Principal(Row, frozen=True):
    """A named identity with one key."""

    table: ClassVar[str] = "principals"
    noun: ClassVar[str] = "principal"
    hashed: ClassVar[frozenset[str]] = frozenset({"key_hash", "old_key_hash", "listed_hash"})

    name: str = ""
    source: str = ISSUED
    key_hash: str | None = None
    scopes: str = WORK_SCOPES
    namespace: str | None = None
    created_at: Instant = 0
    revoked_at: Instant | None = None
    shown: str = ""
    """The masked key, for display: its beginning and its end."""
    prefix: str | None = None
    """Prefix of the job and lock names it may use."""
    expires_at: Instant | None = None
    old_key_hash: str | None = None
    """The key before the last rotation, which still works until `old_until`."""
    old_until: Instant | None = None
    listed_hash: str | None = None
    """Hash of the configured token that its user rotated: that token never works again."""

    def may(self, scope: str) -> bool:
        """Whether its key has this scope, or one of several."""
        return grants(self.scopes, scope)

    def covers(self, name: str) -> bool:
        """Whether it may use this name."""
        prefix = self.name_prefix
        return prefix is None or name.startswith(prefix)

    @property
    def name_prefix(self) -> str | None:
        """The prefix of the names it may use; None if it may use all."""
        return self.prefix if self.namespace is None else f"{self.namespace}."


@lru_cache(maxsize=1_000)
def grants(scopes: str, required: str) -> bool:
    """Whether any required scope is granted. `tasks` grants `tasks:work`; any task scope grants reading tasks."""
    granted = set(scopes.split())
    return bool(granted) and ("admin" in granted or any(_grants(granted, scope) for scope in required.split()))


def _grants(granted: set[str], required: str) -> bool:
    family, _, action = required.partition(":")
    if required == ANY or required in granted or family in granted:
        return True
    return action == "read" and ("read" in granted or any(scope.partition(":")[0] == family for scope in granted))


def admin_principal(account: str, key_hash: str) -> Principal:
    """The principal of the admin key; it is configured, never stored."""
    return Principal(account, ADMIN_ID, version=1, name="admin", source=ROOT, key_hash=key_hash, scopes=ALL_SCOPES)


def accepts_key(principal: Principal, key_hash: str, now: Instant) -> bool:
    """Whether a key is valid for this principal now: the current key, or the previous one within its grace."""
    if principal.revoked_at is not None or (principal.expires_at is not None and principal.expires_at <= now):
        return False
    is_old = principal.old_key_hash == key_hash and principal.old_until is not None and principal.old_until > now
    return principal.key_hash == key_hash or is_old


def works_until(principal: Principal, key_hash: str) -> Instant | None:
    """When a key that works now stops working by itself; None if never."""
    ends = [principal.expires_at, principal.old_until if principal.key_hash != key_hash else None]
    return min((end for end in ends if end is not None), default=None)


def check_not_rotated_away(principal: Principal, key_hash: str) -> None:
    """Refuse the previous key, which works only for its grace period, anything about keys.

    Whoever found a key that was rotated away could else lock its owner out, or keep access under another key.
    """
    if principal.old_key_hash == key_hash != principal.key_hash:
        raise Forbidden("this key was rotated: use the new key for everything about keys and for deleting the account")


def revoke(principal: Principal, now: Instant) -> Principal:
    """Make its key invalid; its id stays in the events of what it did."""
    return replace(principal, revoked_at=now)


def delegate(maker: Principal, key: Principal, expires_at: Instant | None, now: Instant) -> Principal:
    """A new key made by `maker`, with no more than the maker's scopes, names and lifetime."""
    key = replace(key, expires_at=expires_at, created_at=now)
    check_delegation(maker, key)
    return key


def check_delegation(maker: Principal, key: Principal) -> None:
    """Refuse a key with more scopes, names or lifetime than its maker has."""
    excess = [scope for scope in key.scopes.split() if not grants(maker.scopes, scope)]
    if excess:
        raise Forbidden(f"your own key does not have the scope {', '.join(excess)}")
    if not maker.covers(key.name_prefix or ""):
        raise Forbidden(f"your own key covers only names that begin with {maker.name_prefix}")
    if maker.expires_at is not None and (key.expires_at is None or key.expires_at > maker.expires_at):
        raise Forbidden("your own key expires before that")


def may_see_key(by: Principal, key: Principal) -> bool:
    """Whether an administrator sees a key: with a prefix, only its own key and keys that its prefix covers."""
    return key.id == by.id or by.covers(key.name_prefix or "")


def is_permanent_admin(principal: Principal) -> bool:
    """Whether it can administer its whole account and never expires."""
    is_admin = principal.may("admin") and principal.name_prefix is None
    return is_admin and principal.revoked_at is None and principal.expires_at is None


def is_user(principal: Principal) -> bool:
    """Whether it counts as a user: not the keys of the operator and of this machine. A store's query does the same."""
    return principal.revoked_at is None and principal.source != MACHINE and not principal.may("admin")


def rotate(principal: Principal, key_hash: str, shown: str, until: Instant) -> Principal:
    """Replace its key; the old one works until `until`."""
    is_configured = principal.source == STATIC
    return replace(
        principal,
        source=ROTATED if is_configured else principal.source,
        listed_hash=principal.key_hash if is_configured else principal.listed_hash,
        key_hash=key_hash,
        shown=shown,
        old_key_hash=principal.key_hash,
        old_until=until,
    )


def mask_key(key: str) -> str:
    """The masked form of a key, by which people recognise it."""
    return f"{key[:12]}…{key[-4:]}"


def format_key(random: bytes, kind: str = "live") -> str:
    """A key with a checksum, so that a mistyped one is refused without a query: hf_live_<32>_<6>."""
    body = base62(int.from_bytes(random, "big"), 32)
    return f"hf_{kind}_{body}_{_checksum(kind, body)}"


def is_well_formed(key: str) -> bool:
    """Whether a key in Holdfast's format has the right checksum. Keys in other formats are configured tokens."""
    if not key.startswith(("hf_live_", "hf_test_")):
        return True
    _, kind, body, checksum = [*key.split("_"), "", "", ""][:4]
    return hmac.compare_digest(_checksum(kind, body), checksum)


def base62(number: int, width: int) -> str:
    """A number in base 62, cut or padded to a width."""
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return "".join(reversed(digits))


def _checksum(kind: str, body: str) -> str:
    return base62(binascii.crc32(f"{kind}_{body}".encode()), 6)
