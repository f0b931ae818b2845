"""What the clients of the drill have asked and what they were told."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise


class Outcome(Enum):
    """What a client knows about its change."""

    ACKNOWLEDGED = "acknowledged"
    """The server said that it was made."""
    UNKNOWN = "unknown"
    """The server said that it cannot tell, or gave no answer."""
    NOT_APPLIED = "not applied"
    """The server said that nothing was changed, or was never reached."""


@dataclass(frozen=True)
class Call:
    """One change that a client asked for: one request, or several with the same Idempotency-Key."""

    verb: str
    subject: str
    """The name of the job, or the id of the task; empty if the answer would have told it."""
    server: str
    request_ids: tuple[str, ...]
    sent_at: float
    answered_at: float
    """Both by the drill's monotonic clock."""
    outcome: Outcome
    token: int | None = None
    """The fencing token: granted by the answer, or that of the lease which the call is about."""
    ttl: int = 0
    """Seconds that a job is held after its claim or renewal; 0 for tasks."""


@dataclass
class History:
    """Every call, the leases that holders lost in an outage, and errors that no outage explains."""

    calls: list[Call] = field(default_factory=list)
    lost_leases: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, call: Call) -> None:
        with self._lock:
            self.calls.append(call)

    def acknowledged(self) -> list[Call]:
        return [call for call in list(self.calls) if call.outcome is Outcome.ACKNOWLEDGED]

    def longest_outage(self, server: str, since: float, until: float) -> float:
        """The longest time in which a server acknowledged nothing."""
        times = sorted(call.answered_at for call in self.acknowledged() if call.server == server)
        moments = [since, *(moment for moment in times if since < moment < until), until]
        return max(after - before for before, after in pairwise(moments))
