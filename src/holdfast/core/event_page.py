"""Size limits of one read of the log: a number of events and a number of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast.core.event import Event


def data_size(event: Event) -> int:
    """Bytes of an event's data; its other fields are short and not counted."""
    return len(event.data.encode())


def take_bytes(events: Iterable[Event], max_bytes: int) -> Iterator[Event]:
    """The first events, up to and including the event that reaches `max_bytes`: at least one, if there is any.

    The stores' queries apply the same rule.
    """
    size = 0
    for event in events:
        yield event
        size += data_size(event)
        if size >= max_bytes:
            return


def is_full(page: Sequence[Event], limit: int, max_bytes: int) -> bool:
    """Whether one of the two limits may have cut the page short."""
    return len(page) >= limit or sum(map(data_size, page)) >= max_bytes
