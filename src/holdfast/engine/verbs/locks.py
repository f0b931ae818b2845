"""Commands of locks, by OctoStore's rules: re-entrant, with access lists and delays after a release."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import acl as access
from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core.errors import (
    AclConflict,
    Forbidden,
    LeaseGone,
    LeaseMismatch,
    LockLimit,
    Missing,
    SessionExpired,
    SessionMissing,
)
from holdfast.core.lease import LOCK, RELEASED, SESSION_ENDED, Claim, Lease, derive_lease_id, proof_of
from holdfast.core.principal import ADMIN_ID, Principal
from holdfast.core.row import Instant, Key
from holdfast.core.session import Session
from holdfast.engine.command import Command, Held, LeaseOutcome
from holdfast.engine.expiry import expire_lease_if_due
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class Acquired(LeaseOutcome, frozen=True):
    """The caller has the lock, newly or again. Acquiring it again returns the same lease id."""

    lease_id: str


class Delayed(LeaseOutcome, frozen=True):
    """The lock is free, but its delay is not over yet."""


class Changed(LeaseOutcome, frozen=True):
    """The holder renewed or released it, or its access list was set."""


class LockCommand(Command[LeaseOutcome], frozen=True):
    """A command about one lock."""

    by: Principal
    name: str

    def needs(self) -> Needs:
        """The lock's lease."""
        return Needs(rows=((Lease.table, self.account, self.name),))


class AcquireLock(LockCommand, frozen=True):
    """Acquire a free lock, or renew one that the caller holds."""

    claims = LOCK
    secret: bytes
    """The caller's key, from which the lease id is derived; nothing stored reveals the id."""
    ttl: Instant
    limit: int
    """How many live locks the caller may hold."""
    metadata: str | None = None
    session_id: str | None = None
    ephemeral: bool = False
    delay: Instant = 0
    acl: str | None = None

    def needs(self) -> Needs:
        """The lease, the session, and how many locks the caller has."""
        rows: tuple[Key, ...] = ((Lease.table, self.account, self.name),)
        if self.session_id is not None:
            rows += ((Session.table, self.account, self.session_id),)
        return Needs(rows=rows, lock_counts=((self.account, self.by.id),))

    def decide(self, view: View) -> Acquired | Held | Delayed:
        """Check in OctoStore's order: access list, delay, session, limit, then the holder."""
        lease = view.lease(self.account, self.name)
        self._check_acl(lease)
        if leases.is_delayed(lease, view.now):
            return Delayed(lease=lease, now=view.now)
        if self.session_id is not None:
            sessions.check_live(view.find(Session, self.account, self.session_id), self.by.id, view.now)
        is_ours = leases.is_live(lease, view.now) and lease.kind == LOCK and lease.holder == self._holder()
        if not is_ours and view.live_locks(self.account, self.by.id) >= self.limit:
            raise LockLimit(f"a user may hold at most {self.limit} locks")
        if is_ours:
            return self._renew(lease, view)
        lease = expire_lease_if_due(view, self.account, self.name)
        if leases.is_delayed(lease, view.now):
            return Delayed(lease=lease, now=view.now)
        if leases.is_live(lease, view.now):
            return Held(lease=lease, now=view.now)
        return self._grant(lease, view)

    def _check_acl(self, lease: Lease) -> None:
        if lease.acl is not None and self.acl is not None and self.acl != lease.acl:
            raise AclConflict("the lock already has another access list")
        access.check_allowed(lease.acl or self.acl, self.by)

    def _grant(self, lease: Lease, view: View) -> Acquired:
        lease_id = derive_lease_id(self.secret, self.account, self.name, view.now)
        claim = Claim(
            kind=LOCK,
            holder=self._holder(),
            owner=self.by.name,
            principal=self.by.id,
            proof=proof_of(lease_id),
            ttl=self.ttl,
            metadata=self.metadata,
            session=self.session_id,
            ephemeral=self.ephemeral,
            delay=self.delay,
        )
        granted = replace(leases.grant(lease, claim, token=view.token(), now=view.now), acl=lease.acl or self.acl)
        return Acquired(lease=view.put(granted, "claimed"), now=view.now, lease_id=lease_id)

    def _renew(self, lease: Lease, view: View) -> Acquired:
        lease_id = derive_lease_id(self.secret, self.account, self.name, lease.claimed_at or 0)
        renewed = replace(
            lease,
            proof=proof_of(lease_id),
            expires_at=max(lease.expires_at or 0, view.now + self.ttl),
            acl=lease.acl or self.acl,
        )
        return Acquired(lease=view.put(renewed, "renewed"), now=view.now, lease_id=lease_id)

    def _holder(self) -> str:
        return self.session_id if self.ephemeral and self.session_id is not None else self.by.id


class HolderCommand(LockCommand, frozen=True):
    """A write by the holder of a lock."""

    urgent = True
    lease_id: str

    def find_held(self, view: View) -> Lease:
        """The caller's live lease, or the refusal that OctoStore gives in this state."""
        lease = view.lease(self.account, self.name)
        proof = proof_of(self.lease_id)
        if not leases.is_held(lease):
            self._check_expired_session(lease, proof, view)
            raise LeaseGone("nothing is held")
        if lease.ephemeral and lease.session is not None:
            session = view.find(Session, self.account, lease.session)
            if session is None or session.principal != self.by.id:
                raise SessionMissing("there is no such session")
            if not sessions.is_live(session, view.now):
                raise SessionExpired("the session has expired")
        elif lease.principal != self.by.id:
            raise LeaseMismatch("held under another lease")
        leases.check_holder(lease, proof, view.now)
        return lease

    def _check_expired_session(self, lease: Lease, proof: str, view: View) -> None:
        """Report a session that expired just now, although the sweep has already freed its locks."""
        ending = leases.last_ending(lease)
        if ending is None or ending.how != SESSION_ENDED or ending.proof != proof or ending.principal != self.by.id:
            return
        if ending.reason == f"session {sessions.EXPIRED}" and view.now < ending.at + sessions.EXPIRED_REPORT_PERIOD:
            raise SessionExpired("the session has expired")


class RenewLock(HolderCommand, frozen=True):
    """Set a new deadline, earlier or later."""

    ttl: Instant

    def decide(self, view: View) -> Changed:
        """The lock with its new deadline."""
        lease = view.put(leases.extend(self.find_held(view), ttl=self.ttl, now=view.now), "renewed")
        return Changed(lease=lease, now=view.now)


class ReleaseLock(HolderCommand, frozen=True):
    """Release the lock, and start its delay if the holder asked for one."""

    def decide(self, view: View) -> Changed:
        """The free lock."""
        lease = view.put(leases.end(self.find_held(view), RELEASED, now=view.now, by=self.by.id), "released")
        return Changed(lease=lease, now=view.now)


class SetLockAcl(LockCommand, frozen=True):
    """Replace the access list; only the holder may, or the administrator."""

    acl: str

    def decide(self, view: View) -> Changed:
        """The lock with its new list."""
        lease = view.lease(self.account, self.name)
        if self.by.id != ADMIN_ID:
            self._check_holder(lease, view)
        return Changed(lease=view.put(replace(lease, acl=self.acl), "acl_set"), now=view.now)

    def _check_holder(self, lease: Lease, view: View) -> None:
        if not leases.is_held(lease):
            raise Missing(self.name)
        is_holder = leases.is_live(lease, view.now) and lease.principal == self.by.id
        if is_holder and lease.ephemeral:
            session = view.find(Session, self.account, lease.session or "")
            is_holder = session is not None and sessions.is_live(session, view.now)
        if not is_holder:
            raise Forbidden("only the holder of a lock may change its access list")
