"""Rows as the log records them, compared with the model; and changes that the server makes without a call."""

from __future__ import annotations

from typing import Any

from tests.linearizability.history import Call
from tests.linearizability.model.objects import (
    PENDING,
    Changes,
    Held,
    Job,
    Key,
    Moment,
    Reservation,
    Session,
    State,
    Task,
    free,
    may_expire,
    release,
    ways_to_end,
    without_holder,
)
from tests.log_entry import LogEntry

Row = dict[str, Any]


def matches(before: Any, after: Any, row: Row) -> Any | None:
    """The object with the exact values of its row; None if the row is not what the model says."""
    if isinstance(after, Session):
        live = row.get("ended_at") is None
        if (live, row["generation"]) != (after.live, after.generation) or (live and not _in_range(after, row)):
            return None
        return _exact(before, after, row) if live else after
    if isinstance(after, Task) and (after.state, after.attempt, after.used) != (
        row.get("state", PENDING),
        row.get("attempt", 0),
        row.get("attempt_count", 0),
    ):
        return None
    if after.proof is None:
        return after if row.get("proof") is None and _has_same_marks(after, row) else None
    name = row.get("worker") if isinstance(after, Task) else row.get("owner")
    if row.get("proof") is None or (name, row.get("session")) != (after.owner, after.session):
        return None
    return _exact(before, after, row) if _has_same_marks(after, row) and _in_range(after, row) else None


def _has_same_marks(after: Held, row: Row) -> bool:
    """Whether the row is offered and done if the model says so, and has the same paths."""
    is_same = (after.offer is None) == (row.get("offer") is None)
    if isinstance(after, Job):
        return is_same and (after.done is None) == (row.get("done_at") is None)
    if isinstance(after, Reservation) and after.proof is not None:
        return is_same and (list(after.paths), after.mode) == (row["paths"], row.get("mode", "exclusive"))
    return is_same


def _in_range(after: Held | Session, row: Row) -> bool:
    return after.soonest <= row["expires_at"] <= after.latest


def _exact(before: Any, after: Any, row: Row) -> Any | None:
    """The object with the proof, the token and the deadline of its row."""
    if row["proof"] != after.proof and not str(after.proof).startswith("unknown"):
        return None
    if row["token"] < after.token or (row["proof"] != before.proof and row["token"] <= before.token):
        return None
    until = row["expires_at"]
    return _exact_offer(after._replace(proof=row["proof"], token=row["token"], soonest=until, latest=until), row)


def _exact_offer(after: Any, row: Row) -> Any | None:
    """The object with the code and the end of its offer; None if the row has another code."""
    offer = row.get("offer")
    if offer is None:
        return after
    if after.offer != offer["proof"] and not str(after.offer).startswith("unknown"):
        return None
    return after._replace(offer=offer["proof"], open_soonest=offer["until"], open_latest=offer["until"])


def changes_without_call(state: State, entry: LogEntry, rows: dict[str, Row], calls: list[Call]) -> Changes | None:
    """What an event that no call asked for changes; None if the promises do not allow it.

    A lease ends by itself only at or after its deadline, a deadline moves only in favour of its holder (after an outage
    or a step of the clock), and a claim is undone only if its answer did not arrive.
    """
    noun, _, name = entry.subject.partition(":")
    verb = entry.kind.partition(".")[2]
    key: Key = ("job" if noun == "lease" else noun, name)
    held, row, now = state[key], rows[entry.subject], Moment(entry.at, entry.at, state[key].at > 0)
    if verb == "due":
        return {}
    if verb == "extended":
        until = row["expires_at"]
        keeps_its_time = held.proof is not None and until >= min(held.soonest, entry.at + held.ttl)
        return {key: _exact_offer(held._replace(soonest=until, latest=until), row)} if keeps_its_time else None
    if isinstance(held, Session):
        is_due = verb == "expired" and held.live and may_expire(held, now)
        return next(ways_to_end(state, name, now, expired=True)) if is_due else None
    if held.proof is None:  # freed by its session's end, just before
        return {} if matches(held, held, row) is not None else None
    after = _without_holder(held, verb, now, calls)
    return {key: after} if after is not None and matches(held, after, row) is not None else None


def _without_holder(held: Held, verb: str, now: Moment, calls: list[Call]) -> Held | None:
    """The object after the server took it from its holder; None if it must not."""
    if verb == "undelivered" and not _was_answered(held.proof, calls):
        if isinstance(held, Task):
            return release(held, "undelivered", now)
        return free(held, now)._replace(done=held.done) if isinstance(held, Job) else without_holder(held, now)
    if verb in {"expired", "dead_lettered"} and may_expire(held, now):
        return without_holder(held, now)
    return None


def _was_answered(proof: str | None, calls: list[Call]) -> bool:
    return any(call.answer is not None and call.answer.get("proof") == proof for call in calls)
