"""The attempts of a task, rebuilt from its events: who held it, when, and how each ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.row import Instant


class AttemptRecord(msgspec.Struct):
    """One attempt."""

    attempt: int
    worker: str | None = None
    claimed_at: Instant | None = None
    last_seen_at: Instant | None = None
    token: int | None = None
    ended_at: Instant | None = None
    outcome: str | None = None
    reason: str | None = None
    code: str | None = None


def list_attempts(events: Iterable[Event]) -> list[AttemptRecord]:
    """Every attempt, oldest first; attempts whose events retention has removed are missing."""
    found: dict[int, AttemptRecord] = {}
    current: AttemptRecord | None = None
    for event in events:
        data: dict[str, Any] = msgspec.json.decode(event.data)
        verb = event.kind.partition(".")[2]
        if verb == "claimed":
            current = found[data["attempt"]] = AttemptRecord(
                data["attempt"], data.get("worker"), event.at, event.at, data.get("token")
            )
        elif current is not None and verb in {"renewed", "extended", "reissued"}:
            current.last_seen_at = event.at
            current.token = data.get("token", current.token)
        elif current is not None and verb == "undelivered":
            current.ended_at, current.outcome, current = event.at, verb, None
        if isinstance(last := data.get("ended"), dict):
            ended = found.setdefault(last["attempt"], AttemptRecord(last["attempt"], last.get("worker")))
            ended.ended_at, ended.outcome = last["at"], last["outcome"]
            ended.reason, ended.code, current = last.get("reason"), last.get("code"), None
    return [found[number] for number in sorted(found)]
