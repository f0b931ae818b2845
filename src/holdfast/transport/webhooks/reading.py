"""Reading on: each webhook goes through its account's log in order and finds what it is to be told."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from holdfast.core.delivery import Delivery, Hook
from holdfast.core.event import Event, subject_of
from holdfast.core.webhook import Webhook
from holdfast.store.contract import Reader, Store
from holdfast.store.deliveries import Behind, Reading
from holdfast.transport.webhooks.messages import message_for

log = logging.getLogger("holdfast.webhooks")

PAGE = 500
STRIDE = 1_000
"""A stretch in which nothing was found is written down only when it has become this long."""


class Stretch(msgspec.Struct, frozen=True):
    """What came of reading on."""

    found: bool
    more: bool
    """Whether any of them may have more to read."""


class LogReader:
    """Where every webhook stands, as far as this process has looked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[Hook, int] = {}

    def read_on(self, behind: Sequence[Behind]) -> Stretch:
        """Read a page for each and keep what was found."""
        with self._store.read() as reader:
            pages: dict[tuple[str, int], list[Event]] = {}
            readings = [_read(reader, each, self._place(reader, each), pages) for each in behind]
        for reading in readings:
            self._seen[reading.hook] = reading.seq
        told = [reading for reading in readings if _is_worth_telling(reading)]
        moved = set(self._store.deliveries.read_on(told)) if told else set()
        for reading in told:
            if reading.hook not in moved:  # another server has read this stretch: what it has not, we have not either
                del self._seen[reading.hook]
        more = any(reading.seq < each.last for reading, each in zip(readings, behind, strict=True))
        return Stretch(found=any(reading.found for reading in told), more=more)

    def _place(self, reader: Reader, each: Behind) -> int:
        """From where to read: a webhook begins at its own creation; what retention has removed is gone."""
        known = self._seen.get((each.hook.account, each.hook.id), 0)
        if each.cursor is not None:
            return max(each.cursor, known, each.floor)
        return max(known, each.floor) if known else max(_creation(reader, each.hook), each.floor)


def _creation(reader: Reader, hook: Webhook) -> int:
    history = reader.history(hook.account, subject_of(hook))
    return history[0].seq if history and history[0].version == 1 else 0


def _read(reader: Reader, each: Behind, place: int, pages: dict[tuple[str, int], list[Event]]) -> Reading:
    hook = each.hook
    if place < each.last and (hook.account, place) not in pages:
        pages[hook.account, place] = reader.events(hook.account, place, PAGE)
    events = pages.get((hook.account, place), [])
    found: list[Delivery] = []
    for event in events:
        try:
            message = message_for(hook, event, reader)
        except Exception:  # one event that cannot be told must not keep all others from being told
            log.exception("webhook %s is not told of event %d", hook.id, event.seq)
            message = None
        if message is not None:
            found.append(message)
    seq = events[-1].seq if events else place
    return Reading((hook.account, hook.id), each.cursor, seq, tuple(found))


def _is_worth_telling(reading: Reading) -> bool:
    return bool(reading.found) or reading.cursor is None or reading.seq - reading.cursor >= STRIDE
