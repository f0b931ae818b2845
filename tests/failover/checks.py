"""What must hold after a failover: pure functions over what the clients were told and what the store remembers."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.failover.history import Call, Outcome
from tests.log_entry import LogEntry

GRANT = "claimed"


@dataclass
class Findings:
    """Counts of the calls, and a line for each thing that must not be."""

    acknowledged: int = 0
    unknown: int = 0
    lost: list[str] = field(default_factory=list)
    applied_although_refused: list[str] = field(default_factory=list)
    applied_twice: list[str] = field(default_factory=list)
    tokens_reused: list[str] = field(default_factory=list)
    two_holders: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    def problems(self) -> list[str]:
        """Everything that must not be."""
        return [
            f"{name.replace('_', ' ')}: {line}"
            for name, lines in vars(self).items()
            if isinstance(lines, list)
            for line in lines
        ]


def check(calls: Sequence[Call], events: Sequence[LogEntry]) -> Findings:
    """Compare what clients were told with the log, which is given in the order of `seq`."""
    findings = Findings(
        acknowledged=sum(call.outcome is Outcome.ACKNOWLEDGED for call in calls),
        unknown=sum(call.outcome is Outcome.UNKNOWN for call in calls),
    )
    _check_effects(calls, events, findings)
    _check_tokens(calls, events, findings)
    findings.gaps = list(_gaps(events))
    findings.two_holders = [*_two_holders(events), *_two_told(calls)]
    return findings


def _check_effects(calls: Sequence[Call], events: Sequence[LogEntry], findings: Findings) -> None:
    """Each acknowledged call has its one event, and no call that was answered with "not applied" has any."""
    made = Counter((event.request_id, event.verb) for event in events)
    for call in calls:
        effects = sum(made[request_id, call.verb] for request_id in call.request_ids)
        line = f"{call.verb} {call.subject} on {call.server}, request {call.request_ids[-1]}"
        if call.outcome is Outcome.ACKNOWLEDGED and effects == 0:
            findings.lost.append(line)
        elif call.outcome is Outcome.NOT_APPLIED and effects:
            findings.applied_although_refused.append(line)
        if effects > 1:
            findings.applied_twice.append(line)


def _check_tokens(calls: Sequence[Call], events: Sequence[LogEntry], findings: Findings) -> None:
    """No two grants have the same token, and a grant that was asked for after another was known has a larger one."""
    grants = {event.request_id: event.data["token"] for event in events if event.verb == GRANT}
    granted_to = {token: request_id for request_id, token in grants.items()}
    reused = findings.tokens_reused
    if len(granted_to) < len(grants):
        reused += [
            f"the log has token {token} {count} times" for token, count in Counter(grants.values()).items() if count > 1
        ]
    last: dict[str, int] = {}
    for event in events:
        if event.verb == GRANT:
            if event.data["token"] <= last.get(event.subject, 0):
                reused.append(f"token {event.data['token']} of {event.subject} is not above {last[event.subject]}")
            last[event.subject] = event.data["token"]
    known = [call for call in calls if call.outcome is Outcome.ACKNOWLEDGED and call.verb == GRANT]
    for call in known:
        other = granted_to.get(call.token or 0, call.request_ids[0])
        if other not in call.request_ids:
            reused.append(f"token {call.token} of {call.subject} was granted again, to request {other}")
    by_answer = sorted(known, key=lambda call: call.answered_at)
    highest, position = 0, 0
    for call in sorted(known, key=lambda call: call.sent_at):
        while by_answer[position].answered_at < call.sent_at:
            highest = max(highest, by_answer[position].token or 0)
            position += 1
        if (call.token or 0) <= highest:
            reused.append(f"token {call.token} of {call.subject} came after {highest}")


def _gaps(events: Iterable[LogEntry]) -> Iterable[str]:
    """`seq` and the versions of each subject have no gap."""
    versions: dict[str, int] = defaultdict(int)
    for expected, event in enumerate(events, 1):
        if event.seq != expected:
            yield f"seq {event.seq} where {expected} was expected"
            return
        if event.version != versions[event.subject] + 1:
            yield f"version {event.version} of {event.subject} follows {versions[event.subject]}"
        versions[event.subject] = event.version


def _two_holders(events: Iterable[LogEntry]) -> Iterable[str]:
    """By the store's clock nothing is granted while it is held, and nothing expires before its time."""
    held_until: dict[str, int] = {}
    for event in events:
        subject = event.subject
        if event.verb == GRANT and subject in held_until:
            yield f"{subject} was granted in event {event.seq} although it was held"
        if event.verb == "expired" and event.at < held_until.get(subject, event.at):
            yield f"{subject} expired in event {event.seq}, {held_until[subject] - event.at} microseconds early"
        if "expires_at" in event.data:
            held_until[subject] = event.data["expires_at"]
            if held_until[subject] is None:
                del held_until[subject]


def _two_told(calls: Iterable[Call]) -> Iterable[str]:
    """No two clients were told that they hold a name at one time.

    A lease is surely held from the answer that granted it until its holder asked to release it, or until its TTL has
    passed since the request of the last renewal.
    """
    surely: dict[tuple[str, int], list[float]] = {}
    for call in sorted(calls, key=lambda call: call.sent_at):
        if call.token is None or not call.ttl:
            continue
        if call.verb == GRANT and call.outcome is Outcome.ACKNOWLEDGED:
            surely[call.subject, call.token] = [call.answered_at, call.sent_at + call.ttl]
        elif call.verb == "renewed" and call.outcome is Outcome.ACKNOWLEDGED:
            surely[call.subject, call.token][1] = call.sent_at + call.ttl
        elif call.verb == "released":
            surely[call.subject, call.token][1] = min(call.sent_at, surely[call.subject, call.token][1])
    ended: dict[str, tuple[float, int]] = {}
    for (subject, token), (begin, end) in sorted(surely.items(), key=lambda item: item[1]):
        if begin < ended.get(subject, (0.0, 0))[0]:
            yield f"{subject} was held with token {ended[subject][1]} and with token {token} at one time"
        ended[subject] = max(ended.get(subject, (0.0, 0)), (end, token))


def read_events(rows: Iterable[tuple[Any, ...]]) -> list[LogEntry]:
    """Events from rows of (seq, subject, version, kind, at, request_id, data)."""
    return [LogEntry(*row[:-1], data=json.loads(row[-1])) for row in rows]
