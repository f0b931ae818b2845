"""Gaps in the log: which cursors lead into one, and the gap that a restore leaves, with the event that marks it.

Restoring a backup loses everything that happened after it was taken, although clients already know it: tokens granted,
events read. So both counters jump beyond every number that can have been used, and the first event after the gap
records the last event kept. Only a reader whose cursor is exactly there has missed nothing.
"""

from __future__ import annotations

import msgspec

from holdfast.core.errors import CursorAhead, CursorTooOld
from holdfast.core.event import Event
from holdfast.core.row import Instant
from holdfast.decoding import decode

LOG = "log"
"""Noun of events about the log itself, which belong to no row."""
RESTORED = f"{LOG}.restored"
MIN_JUMP = 10**9
ACTOR = "restore"


class _RestoreData(msgspec.Struct):
    after: int


def counter_jump(taken_at: Instant, now: Instant) -> int:
    """How far the counters jump: more than the store can have used since the backup was taken.

    The jump grows by one per microsecond since then, so that restoring the same backup twice never reuses numbers: the
    second jump lands beyond everything used after the first. A century of microseconds is a third of 2^53.
    """
    return MIN_JUMP + max(now - taken_at, 0)


def restore_event(account: str, last: int, taken_at: Instant, now: Instant, *, used: int = 0) -> Event:
    """The first event after the gap. `last` is the last event kept, `used` the highest number known to be read."""
    return Event(
        account=account,
        subject=f"{LOG}:{last}",
        version=1,
        kind=RESTORED,
        at=now,
        actor=ACTOR,
        request_id="",
        data=msgspec.json.encode({"after": last, "taken_at": taken_at}).decode(),
        seq=max(last, used) + counter_jump(taken_at, now) + 1,
    )


def check_cursor(cursor: int, floor: int, last: int) -> None:
    """Refuse a cursor from which a reader would skip events without an error.

    `floor` is the last event removed, `last` the end of the log. A cursor beyond it is of another log, or of this one
    before it was lost and made again.
    """
    if cursor < floor:
        raise CursorTooOld(f"events up to {floor} were removed", oldest=floor + 1)
    if cursor > last:
        raise CursorAhead(f"the log ends at {last}; cursor {cursor} is after its end", last=last)


def is_next(event: Event, cursor: int) -> bool:
    """Whether no event is missing between a cursor and this one: it is the next, or it marks the gap between them."""
    return event.seq == cursor + 1 or (event.kind == RESTORED and last_kept_seq(event) == cursor)


def last_kept_seq(event: Event) -> int:
    """The `seq` of the last event before a marked gap."""
    return decode(event.data, _RestoreData).after


def is_log_subject(subject: str) -> bool:
    """Whether a subject is the log itself and not a row."""
    return subject.startswith(f"{LOG}:")
