"""Import of another server's records into an account, in one transaction."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core.imports.octostore import Plan
from holdfast.core.imports.octostore_records import Records
from holdfast.core.lease import Lease, is_held
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.webhooks.webhook import Webhook
from holdfast.engine.command import Command, Outcome
from holdfast.engine.view import View
from holdfast.store.needs import Needs

_KINDS = {Principal.table: "created", Session.table: "opened", Webhook.table: "created"}
"""The kind of event for each new row that is not a name."""


class Imported(Outcome, frozen=True):
    """What was imported, or would be."""

    applied: bool
    counts: dict[str, int]
    refused: tuple[str, ...]
    """The records that cannot be taken, with the reason."""
    tokens_after: int
    """Every token that is granted from now on is larger."""


class ImportOctostore(Command[Imported], frozen=True):
    """Take over users, sessions, locks, access lists and webhooks; all of them, or nothing."""

    records: Records
    existing: tuple[str, ...]
    """Ids of the account's principals."""
    dry_run: bool = False
    skip_refused: bool = False
    """Whether the rest is imported if some records cannot be taken."""
    private_networks: bool = False
    """Whether webhooks may lead to private addresses."""

    def needs(self) -> Needs:
        """Every row that the records could collide with."""
        return Needs(rows=tuple(dict.fromkeys((*self._principal_keys(), *self._other_keys()))))

    def weight(self) -> int:
        """As many rows as records."""
        return len(self._other_keys()) + len(self.records.users)

    def _principal_keys(self) -> tuple[Key, ...]:
        ids = (*self.existing, *(user.id for user in self.records.users))
        return tuple((Principal.table, self.account, row_id) for row_id in ids)

    def _other_keys(self) -> tuple[Key, ...]:
        records = self.records
        names = [lock.name for lock in records.locks]
        names += [delay.name for delay in records.delays] + [entry.name for entry in records.access_lists]
        return (
            *((Lease.table, self.account, name) for name in names),
            *((Session.table, self.account, session.id) for session in records.sessions),
            *((Webhook.table, self.account, webhook.id) for webhook in records.webhooks),
        )

    def decide(self, view: View) -> Imported:
        """What was imported; nothing if a record was refused, unless that is accepted."""
        stored = [row for key in self.needs().rows if (row := view.at(key)) is not None]
        principals = [row for row in stored if isinstance(row, Principal)]
        plan = Plan(self.account, self.records, principals, view.now, view.wall, private_networks=self.private_networks)
        plan.make(self._used_names(stored, view.now), {table: _ids(stored, table) for table in _KINDS})
        applied = not self.dry_run and (self.skip_refused or not plan.refused)
        if applied:
            view.advance_tokens(self.records.highest_token)
            for row in plan.rows:
                _put(view, row)
        return Imported(
            applied=applied,
            counts=dict(plan.counts),
            refused=tuple(plan.refused),
            tokens_after=self.records.highest_token,
            now=view.now,
        )

    def _used_names(self, stored: list[Row], now: Instant) -> set[str]:
        """Names that are in use, or for which this store has granted a token that is not smaller."""
        tokens = {lock.name: lock.token for lock in self.records.locks}
        return {row.id for row in stored if isinstance(row, Lease) and _is_used(row, tokens.get(row.id), now)}


def _is_used(lease: Lease, token: int | None, now: Instant) -> bool:
    is_granted_later = token is not None and lease.token >= token
    is_kept = lease.acl is not None or leases.is_delayed(lease, now) or lease.done_at is not None
    return is_held(lease) or is_kept or is_granted_later


def _ids(rows: list[Row], table: str) -> set[str]:
    return {row.id for row in rows if row.table == table}


def _put(view: View, row: Row) -> None:
    """Insert a row. The event of a held name is that of a claim: whoever follows the log learns its holder from it."""
    if isinstance(row, Lease):
        before = view.lease(row.account, row.id)
        row = replace(row, token=max(row.token, before.token))
        view.put(row, "claimed" if is_held(row) else "imported")
    else:
        view.put(row, _KINDS[row.table])
