"""The rows that OctoStore's records become. What has expired is left out, as OctoStore does when it starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from holdfast.core.imports.octostore_records import AccessList, Lock, Records, User
from holdfast.core.imports.octostore_records import Session as SessionRecord
from holdfast.core.imports.octostore_records import Webhook as WebhookRecord
from holdfast.core.lease import ELECTION, EXPIRED, LOCK, Ended, Lease, is_held
from holdfast.core.names import ELECTION_PREFIX, lock_name_problem
from holdfast.core.principal import ADMIN_ID, IMPORTED, Principal
from holdfast.core.row import Instant, Row
from holdfast.core.session import Session
from holdfast.core.webhooks.destination import octostore_url_problem, parse_url
from holdfast.core.webhooks.webhook import ACTIVE, LEASE_SUBJECT, OCTOSTORE, PAUSED, Webhook
from holdfast.decoding import decode


class Plan:
    """Translates the records of one file into rows of one account, and collects what cannot be taken.

    `now` is the store's clock, by which leases run, and `wall` the clock of OctoStore's times.
    """

    def __init__(
        self,
        account: str,
        records: Records,
        existing: Iterable[Principal],
        now: Instant,
        wall: Instant,
        *,
        private_networks: bool,
    ) -> None:
        self._account = account
        self._records = records
        self._shift = now - wall
        self._now = now
        self._private_networks = private_networks
        self._existing = [principal for principal in existing if principal.revoked_at is None]
        self._owners: dict[str, Principal] = {ADMIN_ID: Principal(account, ADMIN_ID, name="admin")}
        """The principal of each user of the file."""
        self._sessions = {session.id: session for session in records.sessions}
        self._acls = {entry.name: entry.acl for entry in records.access_lists}
        self.rows: list[Row] = []
        """Users first and webhooks last: a webhook receives what happens after it."""
        self.refused = list(records.refused)
        self.counts: Counter[str] = Counter()
        """How many of each kind are taken, known already, or over."""

    def make(self, used: set[str], taken: Mapping[str, set[str]]) -> None:
        """Make all rows. `used` has the names that the store uses, `taken` the ids of its other rows, by table."""
        for user in self._records.users:
            self._add_user(user, taken[Principal.table])
        for session in self._records.sessions:
            self._add_session(session, taken[Session.table])
        for lock in self._records.locks:
            self._add_lease(lock.name, self._lease_of(lock), used)
        for delay in self._records.delays:
            self._add_lease(delay.name, self._delayed(delay.name, delay.available_at, delay.length), used)
        for entry in self._records.access_lists:
            self._add_access_list(entry, used)
        for webhook in self._records.webhooks:
            self._add_webhook(webhook, taken[Webhook.table])

    # -- users and sessions --------------------------------------------------------------------------------------

    def _add_user(self, user: User, taken: set[str]) -> None:
        known = next((principal for principal in self._existing if principal.key_hash == user.key_hash), None)
        if known is not None:
            self._owners[user.id] = known
            self.counts["users_known"] += 1
        elif user.id in taken:
            self._refuse("user", user.name, "the store has a user with this id and another token")
        elif user.name.lower() in {principal.name.lower() for principal in self._existing}:
            self._refuse("user", user.name, "the store has a user with this name and another token")
        else:
            principal = Principal(
                self._account,
                user.id,
                name=user.name,
                source=IMPORTED,
                key_hash=user.key_hash,
                namespace=user.namespace,
                created_at=user.created_at,
            )
            self._owners[user.id] = principal
            self._add("users", principal)

    def _add_session(self, record: SessionRecord, taken: set[str]) -> None:
        owner = self._owners.get(record.user_id)
        if self._is_over(record.expires_at):
            self.counts["sessions_expired"] += 1
        elif owner is None:
            self._refuse("session", record.id, "its user is not imported")
        elif record.id in taken:
            self._refuse("session", record.id, "the store has it already")
        else:
            session = Session(
                self._account,
                record.id,
                principal=owner.id,
                ttl=record.ttl,
                opened_at=record.created_at + self._shift,
                expires_at=record.expires_at + self._shift,
            )
            self._add("sessions", session)

    # -- locks ---------------------------------------------------------------------------------------------------

    def _lease_of(self, lock: Lock) -> Lease | str | None:
        """The row of a lock: held, or delayed if it has expired; None if it is over, or why it cannot be taken."""
        if lock.name.startswith(ELECTION_PREFIX):
            return None if self._is_over(lock.expires_at) else self._leader(lock)
        problem = lock_name_problem(lock.name)
        if problem is not None:
            return problem
        user_id, expires_at = lock.holder_id, lock.expires_at
        if lock.ephemeral:
            session = self._sessions.get(lock.session_id or "")
            if session is None:
                return "its session is not in the file"
            user_id, expires_at = session.user_id, min(expires_at, session.expires_at)
        if self._is_over(expires_at):
            return self._delayed(lock.name, expires_at + lock.delay, lock.delay, lock.token)
        owner = self._owners.get(user_id)
        if owner is None:
            return "its holder is not imported"
        return self._held(
            lock,
            kind=LOCK,
            holder=lock.holder_id if lock.ephemeral else owner.id,
            owner=owner.name,
            principal=owner.id,
            metadata=None if lock.metadata is None else _json(lock.metadata),
        )

    def _leader(self, lock: Lock) -> Lease | str:
        try:
            about = decode(lock.metadata or "", _Candidate)
        except msgspec.DecodeError as error:
            return f"its metadata does not name the candidate: {error}"
        return self._held(
            lock,
            kind=ELECTION,
            holder=lock.holder_id,
            owner=about.candidate_id,
            principal=lock.holder_id,
            metadata=None if about.metadata is None else _json(about.metadata),
        )

    def _held(self, lock: Lock, **columns: Any) -> Lease:
        return Lease(
            self._account,
            lock.name,
            proof=lock.proof,
            token=lock.token,
            ttl=max(lock.expires_at - lock.acquired_at, 0),
            claimed_at=lock.acquired_at + self._shift,
            expires_at=lock.expires_at + self._shift,
            session=lock.session_id,
            ephemeral=lock.ephemeral,
            delay=lock.delay,
            acl=self._acls.get(lock.name),
            **columns,
        )

    def _delayed(self, name: str, available_at: Instant, length: Instant, token: int = 0) -> Lease | None:
        """A free row whose delay is not over; None if it is."""
        if self._is_over(available_at):
            return None
        ended = Ended(None, EXPIRED, available_at - length + self._shift, "", LOCK)
        return Lease(
            self._account,
            name,
            token=token,
            available_at=available_at + self._shift,
            acl=self._acls.get(name),
            ended=_json(ended),
        )

    def _add_lease(self, name: str, lease: Lease | str | None, used: set[str]) -> None:
        if lease is None:
            self.counts["locks_expired"] += 1
        elif isinstance(lease, str):
            self._refuse("lock", name, lease)
        elif name in used:
            self._refuse("lock", name, "the store has this name already")
        else:
            kind = "elections" if lease.kind == ELECTION else "locks" if is_held(lease) else "delays"
            self._add(kind, lease)
            self.counts["access_lists"] += lease.acl is not None

    def _add_access_list(self, entry: AccessList, used: set[str]) -> None:
        """The list of a name that is free: it stays without a holder."""
        if any(isinstance(row, Lease) and row.id == entry.name for row in self.rows):
            return
        problem = lock_name_problem(entry.name)
        if problem is not None or entry.name in used:
            self._refuse("access list", entry.name, problem or "the store has this name already")
        else:
            self._add("access_lists", Lease(self._account, entry.name, acl=entry.acl))

    # -- webhooks ------------------------------------------------------------------------------------------------

    def _add_webhook(self, record: WebhookRecord, taken: set[str]) -> None:
        owner, target = self._owners.get(record.user_id), parse_url(record.url)
        problem = (
            f"its URL {target}"
            if isinstance(target, str)
            else octostore_url_problem(target, private=self._private_networks)
        )
        if owner is None:
            problem = "its user is not imported"
        elif record.id in taken:
            problem = "the store has it already"
        if problem is not None or owner is None or isinstance(target, str):
            self._refuse("webhook", record.id, problem or "")
            return
        hook = Webhook(
            self._account,
            record.id,
            principal=owner.id,
            family=OCTOSTORE,
            url=target.url,
            events=record.events,
            subject=None if record.pattern is None else LEASE_SUBJECT + record.pattern,
            secret=record.secret,
            state=ACTIVE if record.active else PAUSED,
            reason=None if record.active else "it was not active when it was imported",
            created_at=record.created_at,
        )
        self._add("webhooks", hook)

    # -- all -----------------------------------------------------------------------------------------------------

    def _is_over(self, until: Instant) -> bool:
        return until + self._shift <= self._now

    def _add(self, kind: str, row: Row) -> None:
        self.rows.append(row)
        self.counts[kind] += 1

    def _refuse(self, what: str, name: str, reason: str) -> None:
        self.refused.append(f"{what} {name}: {reason}")


class _Candidate(msgspec.Struct):
    """The metadata of an election's lock."""

    candidate_id: str
    metadata: str | None = None


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
