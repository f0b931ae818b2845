"""Event filters: the one rule by which pages, streams, watches and webhooks select events."""

from __future__ import annotations

import msgspec

from holdfast.core.event import Event, subject_of
from holdfast.core.lease import Lease
from holdfast.core.log_gap import LOG
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.principal import ANY, Principal, grants
from holdfast.core.question import Question
from holdfast.core.reservation.row import Reservation
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.core.task.queue import Queue

_ELECTION_SUBJECTS = subject_of(Lease("", ELECTION_PREFIX))

READ_SCOPES = {
    Lease.noun: "jobs:read",
    Reservation.noun: "jobs:read",
    Task.noun: "tasks:read",
    Queue.noun: "tasks:read",
    Question.noun: "tasks:read answer",
    Session.noun: "jobs:read tasks:read",
    LOG: ANY,
}
"""The scope that events of a noun require: the same as the operation that lists that noun."""
OTHERS = "admin"
"""The scope that events of every other noun require: keys, webhooks, purchases and the account itself."""


class EventFilter(msgspec.Struct, frozen=True):
    """Selects events. A subject or a kind that ends in `*` is a prefix; None matches everything."""

    subject: str | None = None
    kind: str | None = None
    request_id: str | None = None
    scopes: str | None = None
    """The scopes of the reader's key; None may read every noun."""
    name_prefix: str | None = None
    """Prefix of the names that the reader's key covers; None covers every name."""
    elections: bool = False
    """Whether events of elections are included. Elections belong to no account, so an account's log leaves them out."""

    @property
    def exact_subject(self) -> str | None:
        """The subject, if the filter names exactly one."""
        return None if self.subject is None or self.subject.endswith("*") else self.subject

    def matches(self, event: Event) -> bool:
        """Whether this event is selected."""
        return (
            (self.elections or not is_election_event(event))
            and (self.scopes is None or _is_readable(self.scopes, event.subject))
            and (self.name_prefix is None or _is_covered(self.name_prefix, event.subject))
            and matches_pattern(self.subject, event.subject)
            and matches_pattern(self.kind, event.kind)
            and self.request_id in {None, event.request_id}
        )


def filter_for(
    by: Principal, subject: str | None = None, kind: str | None = None, request_id: str | None = None
) -> EventFilter:
    """The filter of a reader: only events that its key may read, whatever it asks for."""
    return EventFilter(subject, kind, request_id, by.scopes, by.name_prefix)


def is_election_event(event: Event) -> bool:
    """Whether the event is about an election."""
    return event.subject.startswith(_ELECTION_SUBJECTS)


def matches_pattern(pattern: str | None, text: str) -> bool:
    """Whether a text equals the pattern, or begins with it if it ends in `*`; None matches every text."""
    if pattern is None:
        return True
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


def _is_readable(scopes: str, subject: str) -> bool:
    """Whether a key with these scopes may read a subject."""
    return grants(scopes, READ_SCOPES.get(subject.partition(":")[0], OTHERS))


def _is_covered(name_prefix: str, subject: str) -> bool:
    """Whether a key with a prefix may read a subject: only leases have names."""
    noun, _, name = subject.partition(":")
    return noun == Lease.noun and name.startswith(name_prefix)
