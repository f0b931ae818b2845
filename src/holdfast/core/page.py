"""Size limits of one page: a number of records and a number of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TypeVar, get_type_hints

from holdfast.core.event import Event
from holdfast.core.row import Row
from holdfast.core.webhooks.delivery import Delivery

PAGE_BYTES = 4 * 1024 * 1024
"""Approximate size of one page, however many records it may have."""

R = TypeVar("R", bound=Row | Event | Delivery)

_TEXT = (str, str | None)


@cache
def counted_columns(record_type: type[Row | Event | Delivery]) -> tuple[str, ...]:
    """The columns whose bytes count: all texts. Of an event only its data: its other fields are short."""
    if record_type is Event:
        return ("data",)
    hints = get_type_hints(record_type)
    return tuple(name for name in record_type.__struct_fields__ if hints[name] in _TEXT)


def record_size(record: Row | Event | Delivery) -> int:
    """Bytes of a record's counted columns."""
    texts = (getattr(record, name) for name in counted_columns(type(record)))
    return sum(len(text.encode()) for text in texts if text is not None)


def take_bytes(records: Iterable[R], max_bytes: int | None) -> Iterator[R]:
    """The first records, up to and including the one that reaches `max_bytes`: at least one, if there is any.

    The stores' queries apply the same rule.
    """
    size = 0
    for record in records:
        yield record
        size += record_size(record)
        if max_bytes is not None and size >= max_bytes:
            return


def is_full(page: Sequence[Row | Event | Delivery], limit: int, max_bytes: int) -> bool:
    """Whether one of the two limits may have cut the page short."""
    return len(page) >= limit or sum(map(record_size, page)) >= max_bytes


def cut(found: Sequence[R], limit: int, max_bytes: int = PAGE_BYTES) -> tuple[list[R], bool]:
    """A page of at most `limit` records, and whether others may follow; one more than `limit` was asked for."""
    return list(found[:limit]), is_full(found, limit + 1, max_bytes)
