"""What a key may see: what the API's own operations would tell it, so that a page never shows more than the API."""

from __future__ import annotations

from holdfast.core.errors import Forbidden
from holdfast.core.event import Event
from holdfast.core.event_filter import filter_for
from holdfast.core.prefix_rule import WHOLE, check_prefix
from holdfast.core.principal import ANY, Principal
from holdfast.operations.table import OPERATIONS_BY_NAME

JOBS, TASKS, SESSIONS, LOG = "list_claimed_jobs", "list_tasks", "list_sessions", "list_events"
FILES, QUESTIONS, QUEUES = "list_reservations", "list_questions", "list_queues"
KEYS, WEBHOOKS, OPERATOR, ACCOUNT = "list_keys", "list_webhooks", "admin_status", "read_account"
"""The operations that stand for the parts of a page."""


def may_use(by: Principal, operation: str) -> bool:
    """Whether the API would answer a key that calls this operation, about some name at least."""
    found = OPERATIONS_BY_NAME[operation]
    return by.may(found.scope or ANY) and (by.name_prefix is None or found.prefix_rule != WHOLE)


def check_use(by: Principal, operation: str, message: str) -> None:
    """Refuse what `may_use` does not allow: with `message` if a scope is missing, else naming the key's prefix."""
    found = OPERATIONS_BY_NAME[operation]
    if not by.may(found.scope or ANY):
        raise Forbidden(message, scope=found.scope)
    if found.prefix_rule == WHOLE:
        check_prefix(by, WHOLE, "")


def may_see_event(by: Principal, event: Event) -> bool:
    """Whether the API's event log contains an event for this key."""
    return filter_for(by).matches(event)


def may_see_throughput(by: Principal) -> bool:
    """Whether a key sees the throughput chart, which counts the events of all names and tasks."""
    return may_use(by, LOG) and may_use(by, JOBS) and may_use(by, TASKS)
