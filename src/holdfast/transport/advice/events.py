"""`agent_contract` of the event log, of an account and of one task."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, check_state, continue_work, contract


def listed(following: str, *, has_more: bool) -> Contract:
    """A page of events; `following` is the query of the next one, which waits for an event if there is none yet."""
    if has_more:
        return check_state("list_events", query=following)
    why = "These are all events so far. The next request waits for a new one: send it only to follow the log."
    later = action("retry_after_wait", operation="list_events", query=following, best=True, wait=1, why=why)
    return contract(later, retryable=True)


def task_read(task_id: str, following: str | None = None) -> Contract:
    """Events or attempts of a task; `following` is the query of the next page."""
    if following is not None:
        return check_state("task_events", task_id, query=following)
    return continue_work("That is the whole history.", action("check_task_status", task_id))
