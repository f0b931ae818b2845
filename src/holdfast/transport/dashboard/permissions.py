"""What a key may see, by the words that stand beside the API's own operations: a page never tells more than the API."""

from __future__ import annotations

from holdfast.core.event import Event
from holdfast.core.event_filter import EventFilter
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.operations.table import OPERATIONS

_SCOPES = {operation.name: operation.scope or "" for operation in OPERATIONS}

JOBS = _SCOPES["list_claimed_jobs"]
TASKS = _SCOPES["list_tasks"]
SESSIONS = _SCOPES["list_sessions"]
LOG = _SCOPES["list_events"]
KEYS = _SCOPES["list_keys"]

_NOUNS = {Lease.noun: JOBS, Task.noun: TASKS, Session.noun: SESSIONS}


def may_follow(by: Principal, event: Event) -> bool:
    """Whether the log would tell a key of an event; the page of the log is for keys that may read the log."""
    return EventFilter(name_prefix=by.name_prefix).matches(event)


def may_hear(by: Principal, event: Event) -> bool:
    """Whether a key that perhaps may not read the log hears of an event: only if it may look at what changed.

    Of keys, webhooks and the account itself only administrators hear.
    """
    noun = event.subject.partition(":")[0]
    return may_follow(by, event) and by.may(_NOUNS.get(noun, KEYS))


def may_see_pace(by: Principal) -> bool:
    """The chart counts events of every name, so it is for keys that may read of every name."""
    return by.may(LOG) and by.name_prefix is None
