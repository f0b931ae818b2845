"""Commands of keys: create, rotate, revoke. They get the hash of a key, never the key."""

from __future__ import annotations

from holdfast.core import principal as principals
from holdfast.core.errors import ConfiguredKey, LastAdmin, Missing, NameTaken, UnknownKey
from holdfast.core.principal import ADMIN_ID, LOCAL, ROOT, STATIC, Principal
from holdfast.core.row import Instant
from holdfast.engine.command import Command, Outcome
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class KeyOutcome(Outcome, frozen=True):
    """A key as it is now."""

    key: Principal


class KeyCommand(Command[KeyOutcome], frozen=True, kw_only=True):
    """A command about one key of an account."""

    key_id: str

    def needs(self) -> Needs:
        """The key."""
        return Needs(rows=((Principal.table, self.account, self.key_id),))

    def find(self, view: View) -> Principal:
        """The key, or Missing if it is absent or revoked."""
        found = view.find(Principal, self.account, self.key_id)
        if found is None or found.revoked_at is not None:
            raise Missing("there is no such key")
        return found


class CallerKeyCommand(KeyCommand, frozen=True, kw_only=True):
    """A command about a key, by a caller whose own key is checked again: another server may have changed it."""

    by: Principal
    by_hash: str
    """Hash of the key that was sent; empty for the admin key, which is in the settings and has no row."""

    def needs(self) -> Needs:
        """The key and the caller's own key."""
        return Needs(rows=((Principal.table, self.account, self.key_id), (Principal.table, self.account, self.by.id)))

    def check_caller(self, view: View) -> None:
        """Refuse a caller whose key stopped working or was rotated away."""
        check_caller_key(view, self.by, self.by_hash)


def check_caller_key(view: View, by: Principal, key_hash: str) -> None:
    """Refuse a caller whose key stopped working or was rotated away, by the row of its key."""
    if key_hash:
        row = view.find(Principal, by.account, by.id)
        if row is None or not principals.accepts_key(row, key_hash, view.now):
            raise UnknownKey("this key was revoked or has expired")
        principals.check_not_rotated_away(row, key_hash)


class CreateKey(CallerKeyCommand, frozen=True, kw_only=True):
    """Create a key with no more rights than the key of its maker."""

    key: Principal
    """Everything but its times."""
    lifetime: Instant | None = None

    def decide(self, view: View) -> KeyOutcome:
        """The new key."""
        self.check_caller(view)
        expires_at = None if self.lifetime is None else view.now + self.lifetime
        key = principals.delegate(self.by, self.key, expires_at, view.now)
        return KeyOutcome(key=view.put(key, "created"), now=view.now)


class RotateKey(CallerKeyCommand, frozen=True, kw_only=True):
    """Replace the secret of a key; the old one works during the grace period."""

    key_hash: str
    shown: str
    grace: Instant

    def decide(self, view: View) -> KeyOutcome:
        """The key with its new secret, which only a caller that could have created the key may get."""
        key = None if self.key_id == ADMIN_ID else self.find(view)
        if key is None or key.source == ROOT:
            raise ConfiguredKey("this key is part of the server's settings: change it there")
        self.check_caller(view)
        if key.id != self.by.id:
            principals.check_delegation(self.by, key)
        after = principals.rotate(key, self.key_hash, self.shown, view.now + self.grace)
        return KeyOutcome(key=view.put(after, "rotated"), now=view.now)


class RevokeKey(CallerKeyCommand, frozen=True, kw_only=True):
    """Revoke a key."""

    others: tuple[str, ...]
    """The other keys of the account: one of them must be able to administer it."""

    def needs(self) -> Needs:
        """All keys of the account."""
        ids = dict.fromkeys((self.key_id, self.by.id, *self.others))
        return Needs(rows=tuple((Principal.table, self.account, key_id) for key_id in ids))

    def decide(self, view: View) -> KeyOutcome:
        """The revoked key; revoking it again changes nothing."""
        self.check_caller(view)
        found = view.find(Principal, self.account, self.key_id)
        if found is None:
            raise Missing("there is no such key")
        if found.revoked_at is not None:
            return KeyOutcome(key=found, now=view.now)
        if found.source in {ROOT, STATIC}:
            raise ConfiguredKey("this key is part of the server's settings: remove it there")
        if found.id != self.by.id:
            principals.check_delegation(self.by, found)
        others = [view.find(Principal, self.account, key_id) for key_id in self.others]
        if found.may("admin") and not any(
            principals.is_permanent_admin(other) for other in others if other is not None
        ):
            raise LastAdmin("this is the last key that can administer the account")
        return KeyOutcome(key=view.put(principals.revoke(found, view.now), "revoked"), now=view.now)


class RegisterUser(KeyCommand, frozen=True, kw_only=True):
    """Register a user of locks under a name that is free."""

    name: str
    namespace: str | None
    key_hash: str
    shown: str

    def decide(self, view: View) -> KeyOutcome:
        """The new user; names that differ only in letter case are the same."""
        if view.find(Principal, self.account, self.key_id) is not None:
            raise NameTaken("this name is taken")
        user = Principal(
            self.account,
            self.key_id,
            name=self.name,
            source=LOCAL,
            key_hash=self.key_hash,
            shown=self.shown,
            namespace=self.namespace,
            created_at=view.now,
        )
        return KeyOutcome(key=view.put(user, "created"), now=view.now)
