"""Sessions that survive a restart, what a key holds, and the event log."""

from __future__ import annotations

from typing import Any

from holdfast.client.methods.base import Caller, R


class SessionMethods(Caller[R]):
    """Sessions that survive a restart, what a key holds, and the event log."""

    def begin_session(
        self,
        name: str,
        *,
        turn: int | None = None,
        last_action: str | None = None,
        next_action: str | None = None,
        context_hash: str | None = None,
        memory_ref: str | None = None,
        context: Any = None,
        secret: str | None = None,
        ttl_seconds: int | None = None,
        lane: bool | None = None,
        capabilities: list[str] | None = None,
        if_live: str | None = None,
    ) -> R:
        """Open a session by its name, or resume it after a restart.

        The first answer has a `secret`, with which the session is resumed: keep it. Every answer has a `lease_id` for
        the following calls and, when a session is resumed, its context and what it holds. With `if_live="refuse"` a
        session that is still live is not taken over from the process that may still run. Claims for the session get
        tasks that require nothing beyond its `capabilities`.
        """
        return self.call(
            "begin_session",
            turn=turn,
            last_action=last_action,
            next_action=next_action,
            context_hash=context_hash,
            memory_ref=memory_ref,
            context=context,
            name=name,
            secret=secret,
            ttl_seconds=ttl_seconds,
            lane=lane,
            capabilities=capabilities,
            if_live=if_live,
        )

    def list_sessions(self, *, limit: int | None = None, cursor: str | None = None) -> R:
        """List the sessions that have a name."""
        return self.call("list_sessions", limit=limit, cursor=cursor)

    def read_session(self, session_id: str, *, cursor: str | None = None) -> R:
        """Read a session, its context and what it holds. If it `hasMore`, pass its `nextCursor` for the next page."""
        return self.call("read_session", id=session_id, cursor=cursor)

    def heartbeat_session(
        self,
        session_id: str,
        lease_id: str,
        *,
        turn: int | None = None,
        last_action: str | None = None,
        next_action: str | None = None,
        context_hash: str | None = None,
        memory_ref: str | None = None,
        context: Any = None,
    ) -> R:
        """Renew a session and all it holds; context fields may be given."""
        return self.call(
            "heartbeat_session",
            id=session_id,
            turn=turn,
            last_action=last_action,
            next_action=next_action,
            context_hash=context_hash,
            memory_ref=memory_ref,
            context=context,
            lease_id=lease_id,
        )

    def write_context(
        self,
        session_id: str,
        lease_id: str,
        *,
        turn: int | None = None,
        last_action: str | None = None,
        next_action: str | None = None,
        context_hash: str | None = None,
        memory_ref: str | None = None,
        context: Any = None,
        if_version: int | None = None,
    ) -> R:
        """Write the context that is returned when the session is resumed; `if_version` guards against other writers."""
        return self.call(
            "write_context",
            id=session_id,
            turn=turn,
            last_action=last_action,
            next_action=next_action,
            context_hash=context_hash,
            memory_ref=memory_ref,
            context=context,
            lease_id=lease_id,
            if_version=if_version,
        )

    def close_session(self, session_id: str, *, lease_id: str | None = None) -> R:
        """End a session and release all it holds."""
        return self.call("close_session", id=session_id, lease_id=lease_id)

    def list_mine(
        self,
        *,
        owner: str | None = None,
        session_id: str | None = None,
        session_secret: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> R:
        """List what this key holds: `held` has sessions, jobs and locks, reservations, then tasks.

        `owner` and `session_id` select some of it. With the `session_secret` of the session, what it holds has its
        `lease_id`. See `Client.mine` for all pages.
        """
        return self.call(
            "list_mine", owner=owner, session_id=session_id, session_secret=session_secret, limit=limit, cursor=cursor
        )

    def list_events(
        self,
        *,
        after: int | None = None,
        limit: int | None = None,
        wait_seconds: float | None = None,
        subject: str | None = None,
        kind: str | None = None,
        request_id: str | None = None,
    ) -> R:
        """Read a page of the account's events after a sequence number; `wait_seconds` waits for the first one."""
        return self.call(
            "list_events",
            after=after,
            limit=limit,
            wait_seconds=wait_seconds,
            subject=subject,
            kind=kind,
            request_id=request_id,
        )
