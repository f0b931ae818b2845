"""Which events somebody wants: one rule for pages, streams and watches."""

from __future__ import annotations

import msgspec

from holdfast.core.event import Event, subject_of
from holdfast.core.lease import Lease
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.task import Task

_ROOMS = subject_of(Lease("", ELECTION_PREFIX))


class Filter(msgspec.Struct, frozen=True):
    """A subject or a kind that ends in `*` stands for all that begin so; None is any."""

    subject: str | None = None
    kind: str | None = None
    request_id: str | None = None
    within: str | None = None
    """What the names begin with that the reader's key covers; None is every name."""
    rooms: bool = False
    """Whether it may see rooms of elections: they belong to nobody's account, so the log does not tell of them."""

    @property
    def exact(self) -> str | None:
        """The one subject it is about, if it is about one."""
        return None if self.subject is None or self.subject.endswith("*") else self.subject

    def fits(self, event: Event) -> bool:
        """Whether this event is wanted."""
        return (
            (self.rooms or not is_of_a_room(event))
            and (self.within is None or _is_covered(self.within, event.subject))
            and _matches(self.subject, event.subject)
            and _matches(self.kind, event.kind)
            and self.request_id in {None, event.request_id}
        )


def is_of_a_room(event: Event) -> bool:
    """Whether it tells of an election."""
    return event.subject.startswith(_ROOMS)


def _is_covered(within: str, subject: str) -> bool:
    """A key that is bound to some names hears of these and of tasks, which have none; not of sessions and keys."""
    noun, _, name = subject.partition(":")
    return name.startswith(within) if noun == Lease.noun else noun == Task.noun


def _matches(pattern: str | None, text: str) -> bool:
    if pattern is None:
        return True
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern
