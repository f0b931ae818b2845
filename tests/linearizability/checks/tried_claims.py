"""Claims of tasks that were tried twice: the first try is a call of its own.

On PostgreSQL a claim that finds no task in a batch with other changes is tried again in a batch of its own, because
another server may have freed a task meanwhile. Its first try may have renewed the session that it was sent for, and
what that holds. So the renewal and the grant, the answer that there is no task, or the refusal because the session has
ended meanwhile, are two steps, each at one moment.
"""

from __future__ import annotations

from dataclasses import replace

from tests.linearizability.history import Call, History
from tests.log_entry import LogEntry


def with_first_tries(history: History) -> History:
    """The history with a call without an answer for each first try that has events, and these under its id."""
    claims = {call.id: call for call in history.calls if _may_be_tried_twice(call)}
    decided: dict[str, int | None] = {entry.request_id: entry.at for entry in history.log if entry.request_id in claims}
    # A refusal has no time: it changes nothing, so all that was changed is of the first try.
    decided |= {call.id: call.answer.get("now") for call in claims.values() if call.answer}
    first_tries: dict[str, Call] = {}
    log = []
    for entry in history.log:
        claim = claims.get(entry.request_id)
        if claim is not None and _is_renewal(entry) and entry.at != decided[claim.id]:
            first = first_tries.setdefault(claim.id, replace(claim, id=f"{claim.id}, first try", answer=None))
            log.append(replace(entry, request_id=first.id))
        else:
            log.append(entry)
    return History([*history.calls, *first_tries.values()], log)


def _may_be_tried_twice(call: Call) -> bool:
    return call.verb == "claim_task" and call.args.get("session") is not None and "code" not in call.args


def _is_renewal(entry: LogEntry) -> bool:
    return entry.kind.endswith(".renewed")
