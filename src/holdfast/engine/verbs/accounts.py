"""Commands of accounts: register, change settings, close; and the sync of configured keys."""

from __future__ import annotations

import uuid

import msgspec
from msgspec.structs import replace

from holdfast.core import account as accounts
from holdfast.core import principal as principals
from holdfast.core.account import Account
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.principal import ALL_SCOPES, IMPORTED, ISSUED, ROTATED, STATIC, Principal
from holdfast.engine.command import Command
from holdfast.engine.verbs.keys import check_caller_key
from holdfast.engine.view import View
from holdfast.store.needs import Needs

_NAMESPACE = uuid.UUID("6f1d6a0e-5b0f-5a76-9a0e-1f0b6a9c1d42")


class KeySetting(msgspec.Struct, frozen=True):
    """A configured key."""

    name: str
    source: str
    key_hash: str
    scopes: str


def principal_id(source: str, name: str) -> str:
    """The id of a configured principal: it depends on the name only, so that its token may change."""
    return str(uuid.uuid5(_NAMESPACE, f"{source}:{name.lower()}"))


class SyncConfiguredKeys(Command[int], frozen=True):
    """Add configured keys, and revoke those that are not configured any more."""

    configured: tuple[KeySetting, ...]
    existing: tuple[str, ...]
    """Ids of the existing principals."""
    revoke: tuple[str, ...] = (STATIC, ROTATED)
    """Sources whose principals are revoked when they are not configured any more."""

    def needs(self) -> Needs:
        """Every existing and every configured principal."""
        ids = {*self.existing, *(principal_id(setting.source, setting.name) for setting in self.configured)}
        return Needs(rows=tuple((Principal.table, self.account, row_id) for row_id in ids))

    def decide(self, view: View) -> int:
        """How many changed."""
        changed = 0
        ids = self._row_ids(view)
        configured_ids = set(ids.values())
        for row_id in sorted(set(self.existing) - configured_ids):
            row = view.find(Principal, self.account, row_id)
            if row is not None and row.source in self.revoke and row.revoked_at is None:
                view.put(principals.revoke(row, view.now), "revoked")
                changed += 1
        for setting in self.configured:
            row_id = ids[setting]
            row = view.find(Principal, self.account, row_id) or Principal(self.account, row_id, created_at=view.now)
            if row.version and setting.source == ISSUED and row.revoked_at is None:
                continue  # an issued key is never replaced here
            if row.source == ROTATED and row.listed_hash == setting.key_hash:
                continue  # its user has rotated this configured token: it must not work again
            after = replace(
                row,
                name=setting.name,
                source=setting.source,
                key_hash=setting.key_hash,
                scopes=setting.scopes,
                revoked_at=None,
                old_key_hash=None,  # a configured key replaces any other at once
                old_until=None,
                listed_hash=None,
            )
            if after != row:
                view.put(after, "changed" if row.version else "created")
                changed += 1
        return changed

    def _row_ids(self, view: View) -> dict[KeySetting, str]:
        """The row of each configured key. A static token belongs to the user of that name, if one was imported."""
        rows = [view.find(Principal, self.account, row_id) for row_id in sorted(self.existing)]
        users = [row for row in rows if row is not None and row.source in {STATIC, ROTATED, IMPORTED}]
        users.sort(key=lambda row: row.revoked_at is None)  # of two with one name, the one that is not revoked
        named = {row.name.lower(): row.id for row in users}
        return {
            setting: (named.get(setting.name.lower()) if setting.source == STATIC else None)
            or principal_id(setting.source, setting.name)
            for setting in self.configured
        }


class RegisterAccount(Command[Account], frozen=True):
    """Create an account with its first key."""

    principal_id: str
    key_hash: str
    shown: str = ""

    def needs(self) -> Needs:
        """Nothing: its ids are new."""
        return Needs()

    def decide(self, view: View) -> Account:
        """The account; its key has every scope in this account."""
        account = Account(self.account, self.account, created_at=view.now, cycle_anchor=view.now)
        account = view.put(account, "registered")
        key = Principal(
            self.account,
            self.principal_id,
            name="first",
            source=ISSUED,
            key_hash=self.key_hash,
            shown=self.shown,
            scopes=ALL_SCOPES,
            created_at=view.now,
        )
        view.put(key, "created")
        return account


class CloseAccount(Command[list[Principal]], frozen=True):
    """Close an account: revoke its keys, and record in the server's own log who closed it."""

    keys: tuple[str, ...]
    by: Principal
    by_hash: str
    """Hash of the key that was sent."""

    def needs(self) -> Needs:
        """Its keys, and its tombstone."""
        tombstone = (Account.table, DEFAULT_ACCOUNT, self.account)
        return Needs(rows=(*((Principal.table, self.account, key) for key in self.keys), tombstone))

    def decide(self, view: View) -> list[Principal]:
        """Revoke every key and write the tombstone; the store erases the rows afterwards. Returns the revoked keys."""
        check_caller_key(view, self.by, self.by_hash)
        rows = [view.find(Principal, self.account, key) for key in self.keys]
        working = [row for row in rows if row is not None and row.revoked_at is None]
        revoked = [view.put(principals.revoke(row, view.now), "revoked") for row in working]
        if view.find(Account, DEFAULT_ACCOUNT, self.account) is None:
            view.put(Account(DEFAULT_ACCOUNT, self.account, created_at=view.now), "deleted")
        return revoked


class ChangeAccountSettings(Command[Account], frozen=True):
    """Change the settings of an account."""

    require_lease_id: bool | None = None

    def needs(self) -> Needs:
        """The account."""
        return Needs(rows=((Account.table, self.account, self.account),))

    def decide(self, view: View) -> Account:
        """The account with its settings."""
        found = view.find(Account, self.account, self.account)
        account = found or Account(self.account, self.account, created_at=view.now)
        after = accounts.change_settings(account, require_lease_id=self.require_lease_id)
        return account if after == account else view.put(after, "settled")
