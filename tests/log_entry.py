"""Events of a store's log, as the checkers of histories read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, frozen=True)
class LogEntry:
    """One event; `data` has the columns that changed."""

    seq: int
    subject: str
    version: int
    kind: str
    at: int
    request_id: str
    data: dict[str, Any]

    @property
    def verb(self) -> str:
        """What happened, without the noun."""
        return self.kind.partition(".")[2]

    def __str__(self) -> str:
        data = " ".join(f"{name}={short(value)}" for name, value in self.data.items() if name in _SHOWN)
        return f"seq {self.seq} {self.kind} {self.subject} at={self.at} by {self.request_id}  {data}"


_SHOWN = {"proof", "token", "expires_at", "state", "attempt", "owner", "worker", "session", "generation", "ended_at"}


def short(value: Any) -> str:
    """A value in the line of a report."""
    text = str(value)
    return text if len(text) <= 24 else f"{text[:12]}…"
