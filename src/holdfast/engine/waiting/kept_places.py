"""Places in a queue that callers keep between two requests.

One request waits for a minute at most. A caller that waits longer asks again, and would join the end of the queue: it
shows the id that its last answer contained, and continues where it was.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from typing import NamedTuple

from holdfast.core.row import Key

KEEP_SECONDS = 10.0
"""How long a place is kept. Nobody waits for it: while its caller is away, the name goes to others."""
MAX_PLACES = 10_000


class Place(NamedTuple):
    """A place in the queues of some names."""

    keys: tuple[Key, ...]
    arrival: int
    until: float
    """By the monotonic clock."""


class KeptPlaces:
    """The places kept in this process. Not locked: its owner holds a lock."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Place] = OrderedDict()
        """By id, in the order in which they end."""

    def keep(self, keys: tuple[Key, ...], arrival: int) -> str:
        """Keep a place; returns the id that its caller must show."""
        now = time.monotonic()
        while self._kept and (len(self._kept) >= MAX_PLACES or next(iter(self._kept.values())).until <= now):
            self._kept.popitem(last=False)
        waiting_id = secrets.token_hex(16)
        self._kept[waiting_id] = Place(keys, arrival, now + KEEP_SECONDS)
        return waiting_id

    def take(self, waiting_id: str | None, keys: tuple[Key, ...]) -> int | None:
        """The arrival number of a kept place in these queues; None if there is none, or no longer."""
        place = None if waiting_id is None else self._kept.get(waiting_id)
        if waiting_id is None or place is None or place.keys != keys:
            return None
        del self._kept[waiting_id]
        return place.arrival if place.until > time.monotonic() else None
