"""Event filters: the one rule by which pages, streams, watches and webhooks select events."""

from __future__ import annotations

import msgspec

from holdfast.core.event import Event, subject_of
from holdfast.core.lease import Lease
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.task import Task

_ELECTION_SUBJECTS = subject_of(Lease("", ELECTION_PREFIX))


class EventFilter(msgspec.Struct, frozen=True):
    """Selects events. A subject or a kind that ends in `*` is a prefix; None matches everything."""

    subject: str | None = None
    kind: str | None = None
    request_id: str | None = None
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
            and (self.name_prefix is None or _is_covered(self.name_prefix, event.subject))
            and matches_pattern(self.subject, event.subject)
            and matches_pattern(self.kind, event.kind)
            and self.request_id in {None, event.request_id}
        )


def is_election_event(event: Event) -> bool:
    """Whether the event is about an election."""
    return event.subject.startswith(_ELECTION_SUBJECTS)


def matches_pattern(pattern: str | None, text: str) -> bool:
    """Whether a text equals the pattern, or begins with it if it ends in `*`; None matches every text."""
    if pattern is None:
        return True
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


def _is_covered(name_prefix: str, subject: str) -> bool:
    """Whether a key bound to a name prefix may read a subject: leases under the prefix, and tasks, which have no names.

    Sessions, keys and accounts are hidden from such a key.
    """
    noun, _, name = subject.partition(":")
    return name.startswith(name_prefix) if noun == Lease.noun else noun == Task.noun
