"""What is contended for: a lock within a session of its own, or the lead of a group.

Times count from the moment a request was started, on a clock that does not stop while the machine sleeps.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any, NamedTuple

from holdfast.client.errors import HoldfastError
from holdfast.transport.cli.hold.renewal import SAFE_PART, clock
from holdfast.transport.cli.octostore.requests import Asker

SESSION_TTL = 30
_LONGEST_GUIDANCE_MS = 300_000


class Wait(NamedTuple):
    """Not ours: why, and how many seconds the server thinks it will take."""

    reason: str
    seconds: float | None


class Lost(Exception):
    """An answer that proves that it is not ours."""


class Election:
    """The lead of a group."""

    kind, granted = "election", "leader"
    is_open = True

    def __init__(self, asker: Asker, name: str, ttl: int, candidate: str) -> None:
        self._asker, self._name, self._ttl, self._candidate = asker, name, ttl, candidate
        self._token = ""
        self.term = 0
        self.expires_at = ""
        self.deadline = self.due = 0.0
        self.deadline_reason = "renewal_deadline_exceeded"

    def contend(self, limit: float) -> Wait | None:
        """Try once; None if we lead now."""
        started = clock()
        answer = self._asker.ask("campaign", limit, id=self._name, candidate_id=self._candidate, ttl_seconds=self._ttl)
        if answer["status"] != "leader":
            return Wait("follower", answer["retry_after_ms"] / 1000)
        self._token, self.term = answer["leader_token"], answer["leader"]["term"]
        if answer["election_id"] != self._name or answer["leader"]["candidate_id"] != self._candidate:
            raise Lost("authority_identity_mismatch")
        self._renewed(started, answer)
        return None

    def confirm(self, limit: float) -> None:
        """Whatever is due, done."""
        started = clock()
        answer = self._asker.ask(
            "renew_leadership", limit, id=self._name, leader_token=self._token, ttl_seconds=self._ttl
        )
        if answer["leader"]["term"] != self.term:
            raise Lost("term_changed")
        self._renewed(started, answer)

    def tend(self) -> None:
        """Nothing has to be kept alive while we wait."""

    def release(self, limit: float) -> bool:
        """Resign; whether that is certain."""
        answer = self._asker.ask("resign", limit, id=self._name, leader_token=self._token)
        return answer.get("status") == "vacant" and answer.get("previous_term") == self.term

    def leave(self, limit: float) -> None:
        """Nothing else is kept."""

    def _renewed(self, started: float, answer: dict[str, Any]) -> None:
        self.expires_at = answer["leader"]["expires_at"]
        self.deadline = started + self._ttl * SAFE_PART
        self.due = started + renewal_pace(answer["renew_after_ms"], self._ttl)


class Lock:
    """A lock that goes with its session, so that two holders with one token contend."""

    kind, granted = "lock", "acquired"

    def __init__(self, asker: Asker, name: str, ttl: int) -> None:
        self._asker, self._name, self._ttl = asker, name, ttl
        self._session = self._lease = ""
        self._session_started = self._interval = self._session_due = 0.0
        self._safe = self._renew_due = 0.0
        self.term = 0
        self.expires_at = ""

    @property
    def is_open(self) -> bool:
        """Whether there is a session."""
        return bool(self._session)

    @property
    def deadline(self) -> float:
        """A lock is ours no longer than its session is."""
        return min(self._safe, self._session_deadline)

    @property
    def deadline_reason(self) -> str:
        early = self._session_deadline < self._safe
        return "session_confirmation_deadline_exceeded" if early else "renewal_deadline_exceeded"

    @property
    def due(self) -> float:
        return min(self._renew_due, self._session_due)

    def contend(self, limit: float) -> Wait | None:
        """Try once, in a session that is opened first; None if it is ours now."""
        if not self._session:
            self._open(limit)
        started = clock()
        answer = self._asker.ask(
            "acquire_lock", limit, name=self._name, ttl_seconds=self._ttl, session_id=self._session, ephemeral=True
        )
        if answer["status"] != "acquired":
            return Wait(answer["status"], answer["retry_after_ms"] / 1000)
        self._lease, self.term = answer["lease_id"], answer["fencing_token"]
        self._renewed(started, answer)
        return None

    def confirm(self, limit: float) -> None:
        """Whatever is due, done: the session, the lease, or both."""
        if clock() >= self._session_due:
            self._keepalive(limit)
        if clock() >= self._renew_due:
            started = clock()
            answer = self._asker.ask("renew_lock", limit, name=self._name, lease_id=self._lease, ttl_seconds=self._ttl)
            if answer["lease_id"] != self._lease:
                raise Lost("lease_changed")
            self._renewed(started, answer)

    def tend(self) -> None:
        """While we wait, the session lives on; one that cannot be confirmed is over."""
        if not self._session or clock() < self._session_due:
            return
        if clock() >= self._session_deadline:
            raise Lost("session_confirmation_deadline_exceeded")
        self._keepalive(self._session_deadline - clock())

    def release(self, limit: float) -> bool:
        """Give it back; whether that is certain. The answer is an empty one, and nothing else is."""
        return self._asker.ask("release_lock", limit, name=self._name, lease_id=self._lease) == {}

    def leave(self, limit: float) -> None:
        """End the session, if there is one; what comes of it does not matter."""
        if self._session:
            with suppress(HoldfastError):
                self._asker.ask("end_session", limit, id=self._session)

    @property
    def _session_deadline(self) -> float:
        return self._session_started + SESSION_TTL * SAFE_PART

    def _open(self, limit: float) -> None:
        started = clock()
        answer = self._asker.ask("open_session", limit, ttl_seconds=SESSION_TTL)
        self._session, self._interval = answer["session_id"], float(answer["keepalive_interval_secs"])
        self._session_started, self._session_due = started, started + self._interval

    def _keepalive(self, limit: float) -> None:
        started = clock()
        self._session_due = started + 1.0  # if it fails, again in a second
        answer = self._asker.ask("keepalive_session", limit, id=self._session)
        if answer["session_id"] != self._session:
            raise Lost("session_identity_mismatch")
        self._session_started, self._session_due = started, started + self._interval

    def _renewed(self, started: float, answer: dict[str, Any]) -> None:
        self.expires_at = answer["expires_at"]
        self._safe = started + self._ttl * SAFE_PART
        self._renew_due = started + renewal_pace(answer["renew_after_ms"], self._ttl)


def renewal_pace(guidance_ms: int, ttl: int) -> float:
    """Seconds until the next renewal: as the server advises, at most half the time, and a little earlier by chance."""
    advised = min(max(guidance_ms, 1), _LONGEST_GUIDANCE_MS) / 1000
    return min(max(advised, 0.1), ttl / 2) * random.uniform(0.9, 1.0)  # noqa: S311 - spreads load, hides nothing
