"""The attempts of a task, told from its events: who held it, from when to when, and how that went."""

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
    """Oldest first; what retention has cut off is not there."""
    found: dict[int, AttemptRecord] = {}
    current: AttemptRecord | None = None
    for event in events:
        told: dict[str, Any] = msgspec.json.decode(event.data)
        verb = event.kind.partition(".")[2]
        if verb == "claimed":
            current = found[told["attempt"]] = AttemptRecord(
                told["attempt"], told.get("worker"), event.at, event.at, told.get("token")
            )
        elif current is not None and verb in {"renewed", "extended", "reissued"}:
            current.last_seen_at = event.at
            current.token = told.get("token", current.token)
        elif current is not None and verb == "undelivered":
            current.ended_at, current.outcome, current = event.at, verb, None
        if isinstance(story := told.get("ended"), dict):
            ended = found.setdefault(story["attempt"], AttemptRecord(story["attempt"], story.get("worker")))
            ended.ended_at, ended.outcome = story["at"], story["outcome"]
            ended.reason, ended.code, current = story.get("reason"), story.get("code"), None
    return [found[number] for number in sorted(found)]
