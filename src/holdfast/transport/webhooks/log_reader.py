"""Reading on: each webhook goes through its account's log in order and finds what it is to be told."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from holdfast.core.event import Event, subject_of
from holdfast.core.webhooks.delivery import Delivery, WebhookKey
from holdfast.core.webhooks.webhook import Filters, filter_at, filter_history
from holdfast.store.contract import Reader, Store
from holdfast.store.contract.deliveries import CursorMove, LaggingWebhook
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


class Place(msgspec.Struct, frozen=True):
    """Where a webhook stands in the log, and by which filters it reads there."""

    seq: int
    version: int
    """Of the webhook: a filter changes only with it."""
    filters: Filters


class LogReader:
    """Where every webhook stands, as far as this process has looked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[WebhookKey, Place] = {}

    def read_on(self, behind: Sequence[LaggingWebhook]) -> Stretch:
        """Read a page for each and keep what was found."""
        with self._store.read() as reader:
            pages: dict[tuple[str, int], list[Event]] = {}
            places = [self._place(reader, each) for each in behind]
            readings = [_read(reader, each, place, pages) for each, place in zip(behind, places, strict=True)]
        told = [reading for reading in readings if _is_worth_telling(reading)]
        moved = set(self._store.deliveries.advance_cursors(told)) if told else set()
        # Only now has anything been read: had the write failed, this stretch would be read again.
        for reading, place in zip(readings, places, strict=True):
            self._seen[reading.hook] = replace(place, seq=reading.seq)
        for reading in told:
            if reading.hook not in moved:  # another server has read this stretch: what it has not, we have not either
                del self._seen[reading.hook]
        more = any(reading.seq < each.last for reading, each in zip(readings, behind, strict=True))
        return Stretch(found=any(reading.found for reading in told), more=more)

    def forget_all_but(self, active: Sequence[WebhookKey]) -> None:
        """Webhooks that are gone or rest are not kept in mind: they begin again where it was written down."""
        if len(self._seen) > len(active):
            wanted = set(active)
            self._seen = {hook: place for hook, place in self._seen.items() if hook in wanted}

    def _place(self, reader: Reader, each: LaggingWebhook) -> Place:
        """From where to read: a webhook begins at its own creation; what retention has removed is gone."""
        hook = each.hook
        known = self._seen.get((hook.account, hook.id))
        if known is None or known.version != hook.version:
            history = reader.history(hook.account, subject_of(hook))
            seq = _creation(history) if known is None else known.seq
            known = Place(seq, hook.version, filter_history(hook, history))
        return replace(known, seq=max(known.seq, each.cursor or 0, each.floor))


def _creation(history: Sequence[Event]) -> int:
    return history[0].seq if history and history[0].version == 1 else 0


def _read(reader: Reader, each: LaggingWebhook, place: Place, pages: dict[tuple[str, int], list[Event]]) -> CursorMove:
    """What comes after its place, up to where the log ended when the webhook was looked at: later, it may differ."""
    hook, start = each.hook, (each.hook.account, place.seq)
    if place.seq < each.last and start not in pages:
        pages[start] = reader.events(*start, PAGE)
    events = [event for event in pages.get(start, []) if event.seq <= each.last]
    found: list[Delivery] = []
    for event in events:
        try:
            message = message_for(filter_at(place.filters, event.seq), event, reader)
        except Exception:  # one event that cannot be told must not keep all others from being told
            log.exception("webhook %s is not told of event %d", hook.id, event.seq)
            message = None
        if message is not None:
            found.append(message)
    seq = events[-1].seq if events else place.seq
    return CursorMove((hook.account, hook.id), each.cursor, seq, tuple(found))


def _is_worth_telling(reading: CursorMove) -> bool:
    return bool(reading.found) or reading.cursor is None or reading.seq - reading.cursor >= STRIDE
