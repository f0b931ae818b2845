"""How much of the log is read at once: so many events, or so many bytes of what they tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast.core.event import Event


def weight(event: Event) -> int:
    """How much it tells, in bytes. What else there is to an event is short."""
    return len(event.data.encode())


def within(events: Iterable[Event], most: int) -> Iterator[Event]:
    """The first of them, up to the one that reaches so many bytes: always one, if there is one."""
    size = 0
    for event in events:
        yield event
        size += weight(event)
        if size >= most:
            return


def is_full(page: Sequence[Event], limit: int, most: int) -> bool:
    """Whether a page that was read within both bounds may have been cut by one of them."""
    return len(page) >= limit or sum(map(weight, page)) >= most
