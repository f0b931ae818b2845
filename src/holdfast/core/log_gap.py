"""What a restore does to the counters, and how the log tells of it.

Whatever happened after a backup was taken is lost when the backup is put back, but others have seen it: tokens that
were granted then, events that were read then. So both counters jump beyond everything that can have been used, and
the first event after the gap says where the log was cut. Only a reader who stands exactly there has missed nothing.
"""

from __future__ import annotations

import msgspec

from holdfast.core.event import Event
from holdfast.core.row import Instant

LOG = "log"
"""The noun of events that are about the log itself, and about no row."""
RESTORED = f"{LOG}.restored"
LEAP = 10**9
ACTOR = "restore"


class _Told(msgspec.Struct):
    after: int


def leap(taken_at: Instant, now: Instant) -> int:
    """How far the counters jump: more than a store can have used since its backup was taken.

    One for every microsecond since then, so that a backup which is put back twice does not give the same numbers
    twice: the second jump lands beyond all that the first life has used. A century of them is a third of 2^53.
    """
    return LEAP + max(now - taken_at, 0)


def restored(account: str, last: int, taken_at: Instant, now: Instant, *, used: int = 0) -> Event:
    """The first event after the gap. `last` is the last one kept, `used` the last that is known to have been seen."""
    return Event(
        account=account,
        subject=f"{LOG}:{last}",
        version=1,
        kind=RESTORED,
        at=now,
        actor=ACTOR,
        request_id="",
        data=msgspec.json.encode({"after": last, "taken_at": taken_at}).decode(),
        seq=max(last, used) + leap(taken_at, now) + 1,
    )


def follows(event: Event, cursor: int) -> bool:
    """Whether nothing lies between a cursor and this event: it is the next one, or the gap before it is marked so."""
    return event.seq == cursor + 1 or (event.kind == RESTORED and kept_until(event) == cursor)


def kept_until(event: Event) -> int:
    """The last event before a marked gap."""
    return msgspec.json.decode(event.data, type=_Told).after


def is_mark(subject: str) -> bool:
    """Whether a subject is a mark in the log and no row."""
    return subject.startswith(f"{LOG}:")
