"""Claims of tasks that were tried several times: each try before the last is a call of its own.

On PostgreSQL a claim that finds no task in a batch with other changes is tried again, because another server may have
freed a task meanwhile; the changes may be those of other claims that are tried again with it, so it may take more than
two tries. Each may renew the session that it was sent for, and what that holds. So the renewals and the grant, the
answer that there is no task, or the refusal because the session has ended meanwhile, are steps of their own, each at
one moment.
"""

from __future__ import annotations

from dataclasses import replace

from tests.linearizability.history import Call, History
from tests.log_entry import LogEntry


def with_earlier_tries(history: History) -> History:
    """The history with a call without an answer for each earlier try that has events, and these under its id."""
    claims = {call.id: call for call in history.calls if _may_be_tried_again(call)}
    decided: dict[str, int | None] = {entry.request_id: entry.at for entry in history.log if entry.request_id in claims}
    # A refusal has no time: it changes nothing, so all that was changed is of earlier tries.
    decided |= {call.id: call.answer.get("now") for call in claims.values() if call.answer}
    tries: dict[tuple[str, int], Call] = {}
    log = []
    for entry in history.log:
        claim = claims.get(entry.request_id)
        if claim is not None and _is_renewal(entry) and entry.at != decided[claim.id]:
            earlier = replace(claim, id=f"{claim.id}, tried at {entry.at}", answer=None)
            log.append(replace(entry, request_id=tries.setdefault((claim.id, entry.at), earlier).id))
        else:
            log.append(entry)
    return History([*history.calls, *tries.values()], log)


def _may_be_tried_again(call: Call) -> bool:
    return call.verb == "claim_task" and call.args.get("session") is not None and "code" not in call.args


def _is_renewal(entry: LogEntry) -> bool:
    return entry.kind.endswith(".renewed")
