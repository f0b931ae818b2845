"""What a key may see: the scopes of the API's own operations, so that a page never shows more than the API."""

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


def is_in_log(by: Principal, event: Event) -> bool:
    """Whether the API's event log would contain an event for a key that may read the log."""
    return EventFilter(name_prefix=by.name_prefix).matches(event)


def may_see_event(by: Principal, event: Event) -> bool:
    """Whether a key, which may lack the scope of the log, sees an event: only if it may read what changed.

    Events of keys, webhooks and the account itself are for administrators.
    """
    noun = event.subject.partition(":")[0]
    return is_in_log(by, event) and by.may(_NOUNS.get(noun, KEYS))


def may_see_throughput(by: Principal) -> bool:
    """Whether a key sees the throughput chart, which counts the events of all names."""
    return by.may(LOG) and by.name_prefix is None
