"""Log reader: reads each webhook's account log in order, and creates the deliveries that its filter selects."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from holdfast.core.event import Event, subject_of
from holdfast.core.page import PAGE_BYTES
from holdfast.core.webhooks.delivery import WebhookKey
from holdfast.core.webhooks.webhook import Filters, filter_at, filter_history
from holdfast.store.contract import Reader, Store
from holdfast.store.contract.deliveries import CursorMove, LaggingWebhook
from holdfast.store.contract.reads import whole_history
from holdfast.transport.webhooks.messages import message_for, record_of_removed_events

log = logging.getLogger("holdfast.webhooks")

PAGE = 500
SAVE_EVERY = 1_000
"""A cursor that moved without finding a delivery is saved only after this many events."""


class ReadResult(msgspec.Struct, frozen=True):
    """The result of reading one page for each webhook."""

    found: bool
    more: bool
    """Whether any webhook may have more to read."""


class Position(msgspec.Struct, frozen=True):
    """A webhook's position in the log, and the filters that apply there."""

    seq: int
    version: int
    """Version of the webhook; its filters change only with it."""
    filters: Filters


class LogReader:
    """Remembers the position of every webhook that this process reads for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._positions: dict[WebhookKey, Position] = {}

    def read_on(self, behind: Sequence[LaggingWebhook]) -> ReadResult:
        """Read a page of the log for each webhook, and save the deliveries found."""
        with self._store.read() as reader:
            pages: dict[tuple[str, int], list[Event]] = {}
            positions = [self._find_position(reader, each) for each in behind]
            moves = [_read_page(reader, each, at, pages) for each, at in zip(behind, positions, strict=True)]
        to_save = [move for move, each in zip(moves, behind, strict=True) if _must_save(move, each.floor)]
        moved = set(self._store.deliveries.advance_cursors(to_save)) if to_save else set()
        # Positions move only after the write: if it fails, the same events are read again.
        for move, position in zip(moves, positions, strict=True):
            self._positions[move.hook] = replace(position, seq=move.seq)
        for move in to_save:
            if move.hook not in moved:  # another server has read these events: start from its saved cursor
                del self._positions[move.hook]
        more = any(move.seq < each.last for move, each in zip(moves, behind, strict=True))
        return ReadResult(found=any(move.deliveries for move in to_save), more=more)

    def forget_all_but(self, active: Sequence[WebhookKey]) -> None:
        """Forget deleted and paused webhooks; a resumed one starts from its saved cursor."""
        if len(self._positions) > len(active):
            active_hooks = set(active)
            self._positions = {hook: position for hook, position in self._positions.items() if hook in active_hooks}

    def _find_position(self, reader: Reader, each: LaggingWebhook) -> Position:
        """Where to read from: a new webhook starts at its own creation."""
        hook = each.hook
        known = self._positions.get((hook.account, hook.id))
        if known is None or known.version != hook.version:
            history = list(whole_history(reader, hook.account, subject_of(hook)))
            seq = _creation_seq(history) if known is None else known.seq
            known = Position(seq, hook.version, filter_history(hook, history))
        return replace(known, seq=max(known.seq, each.cursor or 0))


def _creation_seq(history: Sequence[Event]) -> int:
    return history[0].seq if history and history[0].version == 1 else 0


def _read_page(
    reader: Reader, each: LaggingWebhook, at: Position, pages: dict[tuple[str, int], list[Event]]
) -> CursorMove:
    """The deliveries after a position, up to the end of the log when the webhook was read: it may change after that.

    Events that retention removed before they were read are recorded as one dead letter.
    """
    hook, start = each.hook, (each.hook.account, max(at.seq, each.floor))
    if start[1] < each.last and start not in pages:
        pages[start] = reader.events(*start, PAGE, PAGE_BYTES)
    events = [event for event in pages.get(start, []) if event.seq <= each.last]
    found = [record_of_removed_events(hook, at.seq, each.floor, reader.now)] if at.seq < each.floor else []
    for event in events:
        try:
            message = message_for(filter_at(at.filters, event.seq), event, reader)
        except Exception:  # one event that cannot be rendered must not block all later ones
            log.exception("webhook %s: event %d is skipped", hook.id, event.seq)
            message = None
        if message is not None:
            found.append(message)
    seq = events[-1].seq if events else start[1]
    return CursorMove((hook.account, hook.id), each.cursor, seq, tuple(found))


def _must_save(move: CursorMove, floor: int) -> bool:
    """Whether the cursor must be saved now; one below `floor` would count read events as removed after a restart."""
    return bool(move.deliveries) or move.cursor is None or move.seq - move.cursor >= SAVE_EVERY or move.cursor < floor
