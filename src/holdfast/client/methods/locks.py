"""Locks, sessions and elections, compatible with OctoStore."""

from __future__ import annotations

from typing import Any

from holdfast.client.methods.base import Caller, R


class LockMethods(Caller[R]):
    """Locks, sessions and elections, compatible with OctoStore."""

    def list_locks(self, *, prefix: str | None = None) -> R:
        """List the locks that are held now."""
        return self.call("list_locks", prefix=prefix)

    def get_lock_status(self, name: str) -> R:
        """Read the status and holder of a lock."""
        return self.call("get_lock_status", name=name)

    def watch_lock(self, name: str) -> Any:
        """Watch the status of a lock: iterate to get the current one first, then every change."""
        return self.listen("watch_lock", name=name)

    def acquire_lock(
        self,
        name: str,
        *,
        ttl_seconds: int | None = None,
        metadata: str | None = None,
        session_id: str | None = None,
        ephemeral: bool | None = None,
        lock_delay_seconds: int | None = None,
        acl: dict[str, Any] | None = None,
    ) -> R:
        """Acquire a lock, or extend it if the caller holds it. `status` is `acquired`, `held` or `delayed`."""
        return self.call(
            "acquire_lock",
            name=name,
            ttl_seconds=ttl_seconds,
            metadata=metadata,
            session_id=session_id,
            ephemeral=ephemeral,
            lock_delay_seconds=lock_delay_seconds,
            acl=acl,
        )

    def renew_lock(self, name: str, lease_id: str, *, ttl_seconds: int | None = None) -> R:
        """Renew a lock."""
        return self.call("renew_lock", name=name, lease_id=lease_id, ttl_seconds=ttl_seconds)

    def release_lock(self, name: str, lease_id: str) -> R:
        """Release a lock."""
        return self.call("release_lock", name=name, lease_id=lease_id)

    def set_lock_acl(self, name: str, acl: dict[str, Any]) -> R:
        """Set who may acquire a lock."""
        return self.call("set_lock_acl", name=name, acl=acl)

    def open_session(self, *, ttl_seconds: int | None = None) -> R:
        """Open a session, to which locks can be bound."""
        return self.call("open_session", ttl_seconds=ttl_seconds)

    def get_session(self, session_id: str) -> R:
        """Read whether a session is active."""
        return self.call("get_session", id=session_id)

    def end_session(self, session_id: str) -> R:
        """End a session and release its locks."""
        return self.call("end_session", id=session_id)

    def keepalive_session(self, session_id: str) -> R:
        """Renew a session."""
        return self.call("keepalive_session", id=session_id)

    def create_election(self) -> R:
        """Create an election."""
        return self.call("create_election")

    def get_election_status(self, election_id: str) -> R:
        """Read the leader of an election."""
        return self.call("get_election_status", id=election_id)

    def watch_election(self, election_id: str) -> Any:
        """Watch the status of an election: iterate to get the current one first, then every change."""
        return self.listen("watch_election", id=election_id)

    def campaign(
        self, election_id: str, candidate_id: str, *, ttl_seconds: int | None = None, metadata: str | None = None
    ) -> R:
        """Become the leader if there is none. `status` is `leader` or `follower`."""
        return self.call(
            "campaign", id=election_id, candidate_id=candidate_id, ttl_seconds=ttl_seconds, metadata=metadata
        )

    def renew_leadership(self, election_id: str, leader_token: str, *, ttl_seconds: int | None = None) -> R:
        """Renew the leadership."""
        return self.call("renew_leadership", id=election_id, leader_token=leader_token, ttl_seconds=ttl_seconds)

    def resign(self, election_id: str, leader_token: str, *, ttl_seconds: int | None = None) -> R:
        """Give up the leadership."""
        return self.call("resign", id=election_id, leader_token=leader_token, ttl_seconds=ttl_seconds)

    def register_user(self, username: str, *, namespace: str | None = None) -> R:
        """Register a user name; the answer has its token."""
        return self.call("register_user", username=username, namespace=namespace)

    def rotate_token(self) -> R:
        """Replace the user's token; the old one stops working at once."""
        return self.call("rotate_token")
