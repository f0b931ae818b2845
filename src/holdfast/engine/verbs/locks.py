"""The verbs of locks, with OctoStore's rules: the same holder may acquire again, names have access lists and rests."""

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
    """The caller has the lock, newly or again. A lock acquired again shows the same lease id."""

    lease_id: str


class Delayed(LeaseOutcome, frozen=True):
    """The name rests after its last holder; nobody may have it yet."""


class Changed(LeaseOutcome, frozen=True):
    """The holder renewed or released it, or its access list was set."""


class LockCommand(Command[LeaseOutcome], frozen=True):
    """A verb about one lock."""

    by: Principal
    name: str

    def needs(self) -> Needs:
        """The lease behind the lock."""
        return Needs(rows=((Lease.table, self.account, self.name),))


class AcquireLock(LockCommand, frozen=True):
    """Take the lock if it is free, or keep it if it is already ours."""

    claims = LOCK
    secret: bytes
    """The caller's credential: from it, and from nothing that is stored, the lease id can be made again."""
    ttl: Instant
    limit: int
    """How many live locks the caller may have."""
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
        """OctoStore's order of questions: list, rest, session, limit, then who has it."""
        lease = view.lease(self.account, self.name)
        self._check_list(lease)
        if leases.is_delayed(lease, view.now):
            return Delayed(lease=lease, now=view.now)
        if self.session_id is not None:
            sessions.check_live(view.find(Session, self.account, self.session_id), self.by.id, view.now)
        ours = leases.is_live(lease, view.now) and lease.kind == LOCK and lease.holder == self._holder()
        if not ours and view.live_locks(self.account, self.by.id) >= self.limit:
            raise LockLimit(f"a user may hold at most {self.limit} locks")
        if ours:
            return self._again(lease, view)
        lease = expire_lease_if_due(view, self.account, self.name)
        if leases.is_delayed(lease, view.now):
            return Delayed(lease=lease, now=view.now)
        if leases.is_live(lease, view.now):
            return Held(lease=lease, now=view.now)
        return self._first(lease, view)

    def _check_list(self, lease: Lease) -> None:
        if lease.acl is not None and self.acl is not None and self.acl != lease.acl:
            raise AclConflict("the lock already has another access list")
        access.check_allowed(lease.acl or self.acl, self.by)

    def _first(self, lease: Lease, view: View) -> Acquired:
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

    def _again(self, lease: Lease, view: View) -> Acquired:
        lease_id = derive_lease_id(self.secret, self.account, self.name, lease.claimed_at or 0)
        kept = replace(
            lease,
            proof=proof_of(lease_id),
            expires_at=max(lease.expires_at or 0, view.now + self.ttl),
            acl=lease.acl or self.acl,
        )
        return Acquired(lease=view.put(kept, "renewed"), now=view.now, lease_id=lease_id)

    def _holder(self) -> str:
        return self.session_id if self.ephemeral and self.session_id is not None else self.by.id


class HolderCommand(LockCommand, frozen=True):
    """A write by whoever holds the lock."""

    urgent = True
    lease_id: str

    def held(self, view: View) -> Lease:
        """The caller's live lease, or the refusal that OctoStore gives in this state."""
        lease = view.lease(self.account, self.name)
        proof = proof_of(self.lease_id)
        if not leases.is_held(lease):
            self._check_gone(lease, proof, view)
            raise LeaseGone("nothing is held")
        if lease.ephemeral and lease.session is not None:
            session = view.find(Session, self.account, lease.session)
            if session is None or session.principal != self.by.id:
                raise SessionMissing("there is no such session")
            if not sessions.is_live(session, view.now):
                raise SessionExpired("the session has run out")
        elif lease.principal != self.by.id:
            raise LeaseMismatch("held under another lease")
        leases.check_holder(lease, proof, view.now)
        return lease

    def _check_gone(self, lease: Lease, proof: str, view: View) -> None:
        """A session that ran out a moment ago is told so, although the sweep has already freed its locks."""
        story = leases.last_ending(lease)
        if story is None or story.how != SESSION_ENDED or story.proof != proof or story.principal != self.by.id:
            return
        if story.reason == f"session {sessions.EXPIRED}" and view.now < story.at + sessions.EXPIRED_MEMORY:
            raise SessionExpired("the session has run out")


class RenewLock(HolderCommand, frozen=True):
    """Move the deadline, nearer or further."""

    ttl: Instant

    def decide(self, view: View) -> Changed:
        """The lock with its new deadline."""
        lease = view.put(leases.extend(self.held(view), ttl=self.ttl, now=view.now), "renewed")
        return Changed(lease=lease, now=view.now)


class ReleaseLock(HolderCommand, frozen=True):
    """Let it go; the name rests if its holder asked for that."""

    def decide(self, view: View) -> Changed:
        """The free lock."""
        lease = view.put(leases.end(self.held(view), RELEASED, now=view.now, by=self.by.id), "released")
        return Changed(lease=lease, now=view.now)


class SetLockAcl(LockCommand, frozen=True):
    """Replace the access list: by the holder, or by the administrator on any name."""

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
        holds = leases.is_live(lease, view.now) and lease.principal == self.by.id
        if holds and lease.ephemeral:
            session = view.find(Session, self.account, lease.session or "")
            holds = session is not None and sessions.is_live(session, view.now)
        if not holds:
            raise Forbidden("only the holder of a lock may change its access list")
