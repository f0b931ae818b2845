"""The changes that a batch saves in one transaction."""

from __future__ import annotations

import msgspec

from holdfast.core.event import Event
from holdfast.core.plan import Usage
from holdfast.core.row import Instant, Key, Row


class Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The response to a request with an Idempotency-Key, saved in the transaction of its effect."""

    account: str
    key: str
    fingerprint: str
    status: int
    body: str
    answered_at: Instant


class Changes(msgspec.Struct):
    """Everything a batch changed, saved in one transaction."""

    inserts: dict[str, list[Row]]
    updates: dict[str, list[Row]]
    deletes: dict[str, list[Row]]
    """By table."""
    loaded: dict[Key, Row]
    """The rows as they were loaded, for updates and deletes."""
    touched: dict[Key, tuple[str, ...]]
    """The columns in which a row differs, or may differ, from what is stored."""
    counts: dict[tuple[str, str, str], int]
    """(account, type, state): by how much the number of tasks changed."""
    events: list[Event]
    answers: list[Answer]
    created: dict[str, Usage]
    """By account: how many tasks were created, and in which cycle."""
    dependencies_added: list[tuple[str, str, str]] = []
    """(account, needed task, dependent task) of each dependency of the new tasks."""
    dependencies_removed: list[tuple[str, str, str]] = []
    """The same of the tasks that were removed."""
    paths_added: list[tuple[str, str, str, str]] = []
    """(account, space, prefix, reservation): prefixes under which reservations are found from now on."""
    paths_removed: list[tuple[str, str, str, str]] = []
    """The same for prefixes under which they are found no longer."""
