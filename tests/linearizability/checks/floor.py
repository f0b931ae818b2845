"""A TTL is a floor by a clock that is never set: checked with the times of the calls, not with the store's."""

from __future__ import annotations

from tests.linearizability.checks.log_order import Violation
from tests.linearizability.history import FOREVER, Call, History

EXPIRED = {"lease.expired", "task.expired", "session.expired", "reservation.expired"}


def check_floor(history: History, *, slack_seconds: float) -> int:
    """Raise Violation if a lease expired before its TTL had passed since its last renewal; how many have expired.

    The renewal was decided after its call was made. The expiry was decided before any call returned whose change is
    later in the log.
    """
    by_id = {call.id: call for call in history.calls}
    ends = _returned_after(history, by_id)
    last: dict[str, tuple[int, Call]] = {}
    """By subject: its TTL in microseconds, and the call that began it or renewed it last."""
    ttls: dict[str, int] = {}
    expired = 0
    for entry, returned in zip(history.log, ends, strict=True):
        call = by_id.get(entry.request_id)
        ttl = entry.data.get("ttl", entry.data.get("lease_duration", 0))
        ttls[entry.subject] = ttl or ttls.get(entry.subject, 0)
        if entry.kind in EXPIRED and entry.subject in last:
            expired += 1
            began = last[entry.subject][1]
            passed = (returned - began.called) / 1000
            if passed < ttls[entry.subject] - slack_seconds * 1e6:
                message = f"{entry.subject} expired {passed / 1e6:.3f} s after its renewal:\n{entry}"
                raise Violation(message, began.group, [began], [entry])
        if call is not None and "expires_at" in entry.data and entry.data["expires_at"] is not None:
            last[entry.subject] = (ttls[entry.subject], call)
    return expired


def _returned_after(history: History, by_id: dict[str, Call]) -> list[int]:
    """For each event: the soonest return of a call whose change is in the log at it or after it."""
    found, soonest = [], FOREVER
    for entry in reversed(history.log):
        call = by_id.get(entry.request_id)
        soonest = min(soonest, call.returned if call else FOREVER)
        found.append(soonest)
    return found[::-1]
