"""What `hold` acquires and renews: a lock with its session, or the leadership of an election."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from holdfast.client.errors import HoldfastError
from holdfast.client.leases.clock import LeaseClock, Margins, now
from holdfast.transport.cli.hold.renewal import MARGINS
from holdfast.transport.cli.octostore.requests import Requester

SESSION_TTL = 30
SESSION_MARGINS = Margins(MARGINS.trusted, jitter=0.0)
"""Sessions are kept alive exactly at the interval that the server names."""
_SHORTEST_ADVICE_MS, _LONGEST_ADVICE_MS = 100, 300_000


class Wait(NamedTuple):
    """Not acquired: the reason, and after how many seconds the server advises to try again."""

    reason: str
    seconds: float | None


class Lost(Exception):
    """An answer proves that the lease is not ours."""


class Election:
    """Leadership of an election."""

    kind, granted = "election", "leader"
    is_open = True

    def __init__(self, requester: Requester, name: str, ttl: int, candidate: str) -> None:
        self._requester, self._name, self._ttl, self._candidate = requester, name, ttl, candidate
        self._token = ""
        self._clock = LeaseClock(0.0, 0.0, 0.0, MARGINS)
        self.term = 0
        self.expires_at = ""
        self.deadline_reason = "renewal_deadline_exceeded"

    @property
    def deadline(self) -> float:
        return self._clock.deadline

    @property
    def due(self) -> float:
        return self._clock.due

    def contend(self, limit: float) -> Wait | None:
        """Campaign once; None if we lead now."""
        started = now()
        answer = self._requester.call(
            "campaign", limit, id=self._name, candidate_id=self._candidate, ttl_seconds=self._ttl
        )
        if answer["status"] != "leader":
            return Wait("follower", answer["retry_after_ms"] / 1000)
        self._token, self.term = answer["leader_token"], answer["leader"]["term"]
        if answer["election_id"] != self._name or answer["leader"]["candidate_id"] != self._candidate:
            raise Lost("authority_identity_mismatch")
        self._renewed(started, answer)
        return None

    def confirm(self, limit: float) -> None:
        """Renew the leadership."""
        started = now()
        answer = self._requester.call(
            "renew_leadership", limit, id=self._name, leader_token=self._token, ttl_seconds=self._ttl
        )
        if answer["leader"]["term"] != self.term:
            raise Lost("term_changed")
        self._renewed(started, answer)

    def keep_alive(self) -> None:
        """Do nothing: a candidate has no session."""

    def release(self, limit: float) -> bool:
        """Resign; whether the server confirmed it."""
        answer = self._requester.call("resign", limit, id=self._name, leader_token=self._token)
        return answer.get("status") == "vacant" and answer.get("previous_term") == self.term

    def leave(self, limit: float) -> None:
        """Do nothing: a candidate has no session."""

    def _renewed(self, started: float, answer: dict[str, Any]) -> None:
        self.expires_at = answer["leader"]["expires_at"]
        self._clock = LeaseClock(self._ttl, started, renewal_interval(answer["renew_after_ms"], self._ttl), MARGINS)


class Lock:
    """A lock that ends with its session, so that two processes with the same token compete for it."""

    kind, granted = "lock", "acquired"

    def __init__(self, requester: Requester, name: str, ttl: int) -> None:
        self._requester, self._name, self._ttl = requester, name, ttl
        self._session = self._lease = ""
        self._clock = self._session_clock = LeaseClock(0.0, 0.0, 0.0, MARGINS)
        self.term = 0
        self.expires_at = ""

    @property
    def is_open(self) -> bool:
        """Whether the session is open."""
        return bool(self._session)

    @property
    def deadline(self) -> float:
        """A lock is held no longer than its session."""
        return min(self._clock.deadline, self._session_clock.deadline)

    @property
    def deadline_reason(self) -> str:
        is_session = self._session_clock.deadline < self._clock.deadline
        return "session_confirmation_deadline_exceeded" if is_session else "renewal_deadline_exceeded"

    @property
    def due(self) -> float:
        return min(self._clock.due, self._session_clock.due)

    def contend(self, limit: float) -> Wait | None:
        """Try to acquire once, in a session that is opened first; None if it is acquired."""
        if not self._session:
            self._open(limit)
        started = now()
        answer = self._requester.call(
            "acquire_lock", limit, name=self._name, ttl_seconds=self._ttl, session_id=self._session, ephemeral=True
        )
        if answer["status"] != "acquired":
            return Wait(answer["status"], answer["retry_after_ms"] / 1000)
        self._lease, self.term = answer["lease_id"], answer["fencing_token"]
        self._renewed(started, answer)
        return None

    def confirm(self, limit: float) -> None:
        """Renew what is due: the session, the lease, or both."""
        if now() >= self._session_clock.due:
            self._keepalive(limit)
        if now() >= self._clock.due:
            started = now()
            answer = self._requester.call(
                "renew_lock", limit, name=self._name, lease_id=self._lease, ttl_seconds=self._ttl
            )
            if answer["lease_id"] != self._lease:
                raise Lost("lease_changed")
            self._renewed(started, answer)

    def keep_alive(self) -> None:
        """Keep the session alive while we wait; raise Lost if it could not be confirmed in time."""
        if not self._session or now() < self._session_clock.due:
            return
        if now() >= self._session_clock.deadline:
            raise Lost("session_confirmation_deadline_exceeded")
        self._keepalive(self._session_clock.remaining)

    def release(self, limit: float) -> bool:
        """Release the lock; whether the server confirmed it, which it does with an empty answer."""
        return self._requester.call("release_lock", limit, name=self._name, lease_id=self._lease) == {}

    def leave(self, limit: float) -> None:
        """End the session, if there is one; errors are ignored."""
        if self._session:
            with suppress(HoldfastError):
                self._requester.call("end_session", limit, id=self._session)

    def _open(self, limit: float) -> None:
        started = now()
        answer = self._requester.call("open_session", limit, ttl_seconds=SESSION_TTL)
        self._session = answer["session_id"]
        interval = float(answer["keepalive_interval_secs"])
        self._session_clock = LeaseClock(SESSION_TTL, started, interval, SESSION_MARGINS)

    def _keepalive(self, limit: float) -> None:
        started = now()
        self._session_clock.retry_after(1.0)  # if this one fails
        answer = self._requester.call("keepalive_session", limit, id=self._session)
        if answer["session_id"] != self._session:
            raise Lost("session_identity_mismatch")
        self._session_clock.renewed(started)

    def _renewed(self, started: float, answer: dict[str, Any]) -> None:
        self.expires_at = answer["expires_at"]
        self._clock = LeaseClock(self._ttl, started, renewal_interval(answer["renew_after_ms"], self._ttl), MARGINS)


def renewal_interval(advice_ms: int, ttl: int) -> float:
    """Seconds between renewals: as the server advises, and at most half the TTL."""
    return min(min(max(advice_ms, _SHORTEST_ADVICE_MS), _LONGEST_ADVICE_MS) / 1000, ttl / 2)
